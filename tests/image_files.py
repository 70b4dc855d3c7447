"""Makes image files as bytes: whole ones, and headers that claim any size."""

import io
import struct
import zlib

import numpy as np
from damage import patched
from PIL import Image


def noise(seed: int, side: int = 24) -> Image.Image:
    return Image.fromarray(
        np.random.default_rng(seed).integers(0, 256, (side, side)).astype(np.uint8)
    )


def encoded(kind: str, image: Image.Image | None = None, **options) -> bytes:
    buffer = io.BytesIO()
    (image or noise(99)).save(buffer, kind, **options)
    return buffer.getvalue()


def png(width: int, height: int, rows: bytes = b"", more: bytes = b"") -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + more
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def jpeg_of(width: int, height: int) -> bytes:
    content = encoded("JPEG")
    return patched(content, content.index(b"\xff\xc0") + 5, struct.pack(">HH", height, width))


def tiff_of(width: int) -> bytes:
    """Returns a TIFF file that claims to be as wide and as high as that.

    The width and the height stand in the first two entries of the directory.
    """
    content = encoded("TIFF")
    directory = struct.unpack("<I", content[4:8])[0] + 2
    for entry in (directory, directory + 12):
        kind = 4 if struct.unpack("<H", content[entry + 2 : entry + 4])[0] == 4 else 3
        content = patched(
            content,
            entry + 8,
            struct.pack("<I" if kind == 4 else "<HH", *([width] + [0] * (4 - kind))),
        )
    return content
