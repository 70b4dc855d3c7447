"""Keeps what another member sends as plain text in this member's log: NVFlare logs names as they come.

A line break could begin a line that looks like the log's own, and an escape sequence could command a terminal.
"""

from collections.abc import Callable

CONTINUED = "\n    "


def shown(text: str) -> str:
    """Returns the text with control characters written out, and with its further lines indented."""
    lines = text.rstrip("\n").split("\n")
    return CONTINUED.join("".join(map(_shown, line)) for line in lines)


def _shown(character: str) -> str:
    return character if character.isprintable() or character == "\t" else ascii(character)[1:-1]


def as_text(get_message: Callable) -> Callable:
    """Returns logging's way to a record's message, with `shown` after it."""

    def shown_message(self) -> str:
        return shown(get_message(self))

    return shown_message
