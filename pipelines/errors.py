"""Holds the one exception that a user may see: a sentence, not a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake that the user can mend. Its text says what is wrong, where, and what would work."""


@contextmanager
def told_in_a_sentence(*, interrupted: str = "Interrupted.") -> Iterator[None]:
    """Ends a command with a sentence and exit 1 where the error is no bug of ours.

    Such errors are a user's mistake, one of the file system, a lack of memory, and Ctrl-C.

    Args:
        interrupted: The sentence for Ctrl-C.
    """
    try:
        yield
    except UserError as error:
        lines = f"Error: {error}".split("\n")
        sys.exit("\n".join(map(printable, lines)))
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        sys.exit(printable(f"Error: {error.strerror or error}{place}."))
    except MemoryError as error:
        sys.exit(printable(f"Error: There is not enough memory ({error})."))
    except KeyboardInterrupt:
        sys.exit(interrupted)


def printable(text: object) -> str:
    r"""Returns the text with every character escaped that is not printable.

    A file's name may hold a line break, bytes that are no UTF-8, or a command to the terminal.

    >>> print(printable("c0\x1b[2J"))
    c0\x1b[2J
    """
    characters = []
    for character in str(text):
        characters.append(character if character.isprintable() else ascii(character)[1:-1])
    return "".join(characters)
