"""The one exception that a user may see: a sentence, not a traceback."""


class UserError(Exception):
    """A mistake the user can mend. Its text says what is wrong, where, and what would work."""
