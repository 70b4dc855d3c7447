"""The one exception that a user may see: a sentence, not a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake the user can mend. Its text says what is wrong, where, and what would work."""


@contextmanager
def told_in_a_sentence(*, interrupted: str = "Interrupted.") -> Iterator[None]:
    """Ends a command with a sentence and exit 1 for a user's mistake, the file system, memory, or Ctrl-C."""
    try:
        yield
    except UserError as error:
        sys.exit("\n".join(printable(line) for line in f"Error: {error}".split("\n")))
    except OSError as error:
        sys.exit(
            printable(
                f"Error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}."
            )
        )
    except MemoryError as error:
        sys.exit(printable(f"Error: There is not enough memory ({error})."))
    except KeyboardInterrupt:
        sys.exit(interrupted)


def printable(text: object) -> str:
    """Returns the text with every character escaped that is not printable.

    A file's name may hold a line break, bytes that are no UTF-8, or a command to the terminal.
    """
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in str(text)
    )
