"""Reads one picture file of the user's own as an array, whatever its size and mode."""

import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from pipelines.errors import UserError, printable

# Pillow looks at the content, not at the name: without a list an EPS named .png would reach
# Ghostscript.
FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF", "PPM")
ENDINGS = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".dib", ".tif", ".tiff")
ENDINGS += (".webp", ".gif", ".ppm", ".pgm", ".pbm", ".pnm")
# Images by their names, which are reported as unreadable: whoever has a class of them would miss it
OTHER_ENDINGS = (".dcm", ".heic", ".heif", ".avif", ".jp2", ".j2k", ".jxl", ".tga")
OTHER_ENDINGS += (".svg", ".psd", ".eps", ".dng")
MOST_PIXELS = 100_000_000


def picture(file: Path, shape: list[int]) -> np.ndarray:
    """Returns a picture upright, grey or RGB, stretched to a size; transparent parts are black.

    Args:
        file: The picture file.
        shape: [H, W, C] of the array to return.

    Returns:
        uint8 [H, W, C].

    Raises:
        UserError: Naming the file that is no readable image.

    >>> Image.new("RGB", (4, 4), "red").save("red.png")
    >>> picture(Path("red.png"), [1, 1, 3]).tolist()
    [[[255, 0, 0]]]
    """
    height, width, channels = shape
    plain = opened(file, "L" if channels == 1 else "RGB")
    # Pillow averages where it shrinks
    resized = plain.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(resized).reshape(shape)


def opened(file: Path, mode: str) -> Image.Image:
    """Returns a picture upright and decoded, with 8 bits per channel; transparent parts are black.

    Args:
        file: The picture file.
        mode: "L", which is grey, or "RGB".

    Raises:
        UserError: Naming the file that is no readable image.
    """
    try:
        with warnings.catch_warnings():
            # Pillow warns of odd metadata and of large images, with lines of its own code
            warnings.simplefilter("ignore")
            return _opened(file).convert(mode)
    except Exception as error:
        # Pillow's plugins each have errors of their own for a damaged file
        raise UserError(f"{printable(file)} is no readable image ({_reason(error)}).") from None


def _opened(file: Path) -> Image.Image:
    if file.suffix.lower() in OTHER_ENDINGS:
        raise ValueError(f"only {', '.join(FORMATS)} are read")
    too_large = ValueError(f"it has more than {MOST_PIXELS:,} pixels")
    try:
        with Image.open(file, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise too_large
            return _eight_bit(ImageOps.exif_transpose(image))
    except Image.DecompressionBombError:
        raise too_large from None


def _reason(error: Exception) -> str:
    """Returns the error's text on one line, without the path that some repeat."""
    if isinstance(error, UnidentifiedImageError):
        return f"its content is none of {', '.join(FORMATS)}"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(printable(text).split())


def _eight_bit(image: Image.Image) -> Image.Image:
    """Returns the image with 8 bits per channel and without transparency.

    Of 16-bit greys the upper byte remains; Pillow's own conversion would cut them off at 255.
    """
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError("its 32-bit pixels have no known range; save it with 8 or 16 bits")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "black"), image)
    return image
