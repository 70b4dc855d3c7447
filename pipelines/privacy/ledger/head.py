"""The head of a chain, a file beside it: how many lines were written, and the hash of the last one."""

import json
import re
from dataclasses import asdict, dataclass

START = "0" * 64  # the hash before the first line
HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Head:
    lines: int
    hash: str

    def as_bytes(self) -> bytes:
        return (json.dumps(asdict(self)) + "\n").encode()


NONE = Head(0, START)  # of a chain without a line


def parsed(content: bytes) -> Head:
    """
    Raises:
        ValueError: how the file is damaged, to stand after its name.
    """
    if not content.strip():
        raise ValueError("is empty, as a power cut may leave a file that was being written")
    try:
        fields = json.loads(content.decode())
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if not isinstance(fields, dict):
        raise ValueError("holds no mapping")
    lines, last = fields.get("lines"), fields.get("hash")
    if type(lines) is not int or lines < 0:
        raise ValueError(f"must have a number of 'lines', and has {lines!r}")
    if not isinstance(last, str) or not HASH.fullmatch(last):
        raise ValueError(f"must have the 'hash' of the last line, and has {last!r}")
    return Head(lines, last)
