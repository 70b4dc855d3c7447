"""Writes fields as bytes that have one reading, for hashes, signatures and key derivation.

Each field is preceded by its kind and its length. So two different lists of fields never give the
same bytes, and a signature for one purpose is none for another.

>>> encoded("ab", "c") == encoded("a", "bc")
False
>>> encoded(1) == encoded("1")
False
"""

import hashlib

Field = bytes | str | int


def encoded(*fields: Field) -> bytes:
    """Returns the fields as bytes, each with its kind (1 byte) and its length (8 bytes).

    Args:
        *fields: Bytes, texts and integers of any size and sign.

    Raises:
        TypeError: A field is of another kind, such as a boolean or a float.
    """
    parts = []
    for field in fields:
        kind, content = _content(field)
        parts.append(kind + len(content).to_bytes(8, "big") + content)
    return b"".join(parts)


def digest(*fields: Field) -> bytes:
    """Returns the SHA-256 of the encoded fields, 32 bytes."""
    return hashlib.sha256(encoded(*fields)).digest()


def _content(field: Field) -> tuple[bytes, bytes]:
    """Returns the kind of a field, one byte, and its content."""
    if type(field) is bytes:
        return b"b", field
    if type(field) is str:
        return b"s", field.encode()
    if type(field) is int:
        return b"i", str(field).encode()
    raise TypeError(f"A field must be bytes, a text or an int. Got {type(field).__name__}.")
