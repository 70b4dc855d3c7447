"""Holds the one exception of the protocol: a sentence that names the cause, and holds no secret."""


class Refusal(Exception):
    """Says why a message is not answered, or why a round ends without a sum.

    The text names the cause and what can be done. It holds no key, share, mask or vector.
    """
