"""Reads the head of a chain: the number of lines that were written, and the hash of the last one.

The head is a file beside the chain, so that a cut-off tail shows.
"""

import json
import re
from dataclasses import asdict, dataclass

# the hash before the first line
START = "0" * 64
HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Head:
    """The head of a chain.

    Attributes:
        lines: The number of lines that were written.
        hash: The hash of the last one.
    """

    lines: int
    hash: str

    def as_bytes(self) -> bytes:
        """Returns the content of the head's file."""
        return (json.dumps(asdict(self)) + "\n").encode()


# of a chain without a line
NONE = Head(0, START)


def parsed(content: bytes) -> Head:
    """Returns the head that a file's content states.

    Raises:
        ValueError: The content is damaged. The text says how, and stands after the file's name.
    """
    if not content.strip():
        raise ValueError("is empty, as a power cut may leave a file that was being written")
    try:
        fields = json.loads(content.decode())
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if not isinstance(fields, dict):
        raise ValueError("holds no mapping")
    lines = fields.get("lines")
    if type(lines) is not int or lines < 0:
        raise ValueError(f"must have a number of 'lines', and has {lines!r}")
    last = fields.get("hash")
    if not isinstance(last, str) or not HASH.fullmatch(last):
        raise ValueError(f"must have the 'hash' of the last line, and has {last!r}")
    return Head(lines, last)
