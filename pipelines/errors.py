"""The one exception that a user may see: a sentence, not a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake the user can mend. Its text says what is wrong, where, and what would work."""


@contextmanager
def told_in_a_sentence(*, interrupted: str = "Interrupted.") -> Iterator[None]:
    """What may end a command, as one sentence and exit 1: a user's mistake, the file system, Ctrl-C."""
    try:
        yield
    except UserError as error:
        sys.exit(f"Error: {error}")
    except OSError as error:
        sys.exit(f"Error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
    except KeyboardInterrupt:
        sys.exit(interrupted)
