"""Functions that tests send to other processes, which import them by name.

Those processes know no name of a test file.
"""


def failing(gradients, generator):
    """A ballot that cannot be cast."""
    raise ZeroDivisionError("planted")
