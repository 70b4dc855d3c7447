"""The user's own images in a folder per class, `ROOT/DATASET/CLASS/**`, of any size, mode and format that Pillow reads.

Class names in the order of their characters are labels 0, 1, 2 and so on. Names that begin with a dot are ignored.
"""

import hashlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from tqdm import tqdm

from pipelines.datasets.containers import Images
from pipelines.errors import UserError


def read(*, root: Path, dataset: str, shape: list[int], **_) -> tuple[Images, None]:
    """Every image, resized to `shape`.

    A record's id is a hash of its path below the folder, so that files which come and go rename no other record. The
    path names the class: a record that changes class is another record, one removed and one added.

    Raises:
        UserError: no such folder, no class in it, a link where DVC would not see changes, or an unreadable image.
    """
    folder = root / dataset
    files = [(label, file) for label, name in enumerate(_classes(folder)) for file in _files(folder / name)]
    images = np.empty((len(files), *shape), np.uint8)
    for row, (_, file) in enumerate(tqdm(files, desc=dataset, disable=None)):
        images[row] = picture(file, shape)
    labels = np.array([label for label, _ in files], np.int64)
    return Images(images, labels, np.array([_name(file.relative_to(folder)) for _, file in files], np.int64)), None


def picture(file: Path, shape: list[int]) -> np.ndarray:
    """uint8 [H, W, C]: upright, transparent parts black, grey or RGB as `shape` says, stretched to its size.

    Raises:
        UserError: naming the file that is no readable image.
    """
    height, width, channels = shape
    try:
        with Image.open(file) as image:
            plain = _eight_bit(ImageOps.exif_transpose(image)).convert("L" if channels == 1 else "RGB")
            resized = plain.resize((width, height), Image.Resampling.BILINEAR)  # Pillow averages where it shrinks
    except Exception as error:  # Pillow's plugins each have errors of their own for a damaged file
        raise UserError(f"{file} is no readable image ({' '.join(str(error).split())}).") from None
    return np.asarray(resized).reshape(shape)


def _eight_bit(image: Image.Image) -> Image.Image:
    """16-bit greys keep their upper byte (Pillow's own conversion would cut them off at 255); transparency goes."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError("its 32-bit pixels have no known range; save it with 8 or 16 bits")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "black"), image)
    return image


def _classes(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise UserError(f"{folder} is missing. Put a folder per class there.")
    linked = next((path for path in (folder, *folder.rglob("*")) if path.is_symlink() and path.is_dir()), None)
    if linked:
        raise UserError(
            f"{linked} is a link, behind which DVC sees no change. Put the images themselves there, or name the folder "
            "above them in 'prepare.root'. (params.yaml)"
        )
    names = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not names:
        raise UserError(f"{folder} holds no folder. Put one per class there.")
    return names


def _files(folder: Path) -> list[Path]:
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return [folder / path for path in sorted(found) if not any(part.startswith(".") for part in path.parts)]


def _name(path: Path) -> int:
    """63 bits: never negative, for -1 marks synthetic images."""
    return int.from_bytes(hashlib.sha256(path.as_posix().encode()).digest()[:8]) >> 1
