"""The user's own images in a folder per class, `ROOT/DATASET/CLASS/**`, of any size and mode.

Class names in the order of their characters are labels 0, 1, 2 and so on. A file is an image if its name ends like one;
`raw/README.md` says what becomes of the others.
"""

import hashlib
import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from tqdm import tqdm

from pipelines.datasets import raw_files
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError, printable

# Pillow looks at the content, not at the name: without a list an EPS named .png would reach Ghostscript.
FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF", "PPM")
ENDINGS = (
    ".png",
    ".jpg",
    ".jpeg",
    ".jpe",
    ".jfif",
    ".bmp",
    ".dib",
    ".tif",
    ".tiff",
    ".webp",
    ".gif",
)
ENDINGS += (".ppm", ".pgm", ".pbm", ".pnm")
# Images by their names, which are told as unreadable: whoever has a class of them would miss it.
OTHER_ENDINGS = (
    ".dcm",
    ".heic",
    ".heif",
    ".avif",
    ".jp2",
    ".j2k",
    ".jxl",
    ".tga",
    ".svg",
    ".psd",
    ".eps",
    ".dng",
)
MOST_PIXELS = 100_000_000


@dataclass
class Listing:
    """The files in the folder of a data set.

    Attributes:
        images: (label, path) of each file that is an image by its name, in the order of the records.
        left_out: what is no image, or lies where none is read, by the reason.
        outside: links to files elsewhere, which are read.
    """

    images: list[tuple[int, Path]] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    outside: list[str] = field(default_factory=list)

    def leave(self, reason: str, name: str) -> None:
        self.left_out.setdefault(reason, []).append(name)


def read(
    *, root: Path, dataset: str, shape: list[int], on_unreadable: str = "fail", **_
) -> tuple[Images, None]:
    """Returns every image, resized to `shape`, and prints what was left out.

    A record's id is a hash of its path below the folder, so that files which come and go rename no other record. The
    path names the class: a record that changes class is another record, one removed and one added.

    Args:
        on_unreadable: "fail", or "skip" to leave out the images that cannot be read.

    Raises:
        UserError: no such folder, no class in it, a link where DVC would not see changes, or unreadable images.
    """
    folder = root / dataset
    listing = _listing(folder, classes(folder))
    _tell(dataset, folder, listing)
    images = np.empty((len(listing.images), *shape), np.uint8)
    readable, broken = [], []
    for label, file in tqdm(listing.images, desc=dataset, disable=None):
        try:
            images[len(readable)] = picture(file, shape)
        except UserError as error:
            broken.append(str(error))
        else:
            readable.append((label, _name(file.relative_to(folder))))
    if broken:
        _judge(dataset, broken, on_unreadable)
    labels, ids = np.array(readable, np.int64).reshape(-1, 2).T
    return Images(images[: len(readable)], labels.copy(), ids.copy()), None


def picture(file: Path, shape: list[int]) -> np.ndarray:
    """uint8 [H, W, C]: upright, transparent parts black, grey or RGB as `shape` says, stretched to its size.

    Raises:
        UserError: naming the file that is no readable image.
    """
    height, width, channels = shape
    try:
        with warnings.catch_warnings():
            # Pillow warns of odd metadata and of large images, with lines of its own code
            warnings.simplefilter("ignore")
            plain = _opened(file).convert("L" if channels == 1 else "RGB")
        resized = plain.resize(
            (width, height), Image.Resampling.BILINEAR
        )  # Pillow averages where it shrinks
    except Exception as error:  # Pillow's plugins each have errors of their own for a damaged file
        raise UserError(f"{printable(file)} is no readable image ({_reason(error)}).") from None
    return np.asarray(resized).reshape(shape)


def classes(folder: Path) -> list[str]:
    """Returns the names of the class folders: the first is label 0.

    Raises:
        UserError: the folder is missing or has none.
    """
    if not folder.is_dir():
        raise UserError(f"{printable(folder)} is missing. Put a folder per class there.")
    names = sorted(
        path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
    )
    if not names:
        raise UserError(f"{printable(folder)} holds no folder. Put one per class there.")
    return names


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
    """The error's text on one line, without the path that some repeat."""
    if isinstance(error, UnidentifiedImageError):
        return f"its content is none of {', '.join(FORMATS)}"
    return " ".join(
        printable(getattr(error, "strerror", None) or str(error) or type(error).__name__).split()
    )


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


def _listing(folder: Path, names: list[str]) -> Listing:
    listing, labels, files = Listing(), {name: label for label, name in enumerate(names)}, []
    _refuse_link(folder, linked=folder.is_symlink())
    for entry in raw_files.below(folder):
        path = Path(entry.path)
        inside = path.relative_to(folder)
        is_folder = raw_files.is_folder(entry)
        _refuse_link(path, linked=entry.is_symlink() and is_folder)
        if any(part.startswith(".") for part in inside.parent.parts):
            continue
        if entry.name.startswith("."):
            listing.leave("hidden by the dot before its name", str(inside))
        if is_folder or entry.name.startswith("."):
            continue
        odd = raw_files.oddity(entry)
        if odd in raw_files.SPECIAL.values():
            listing.leave(odd, str(inside))
        elif path.suffix.lower() not in (*ENDINGS, *OTHER_ENDINGS):
            listing.leave("no image by the ending of its name", str(inside))
        elif len(inside.parts) == 1:
            listing.leave("an image in no class folder", str(inside))
        else:
            files.append(inside)
            if (
                entry.is_symlink()
                and not odd
                and not path.resolve().is_relative_to(folder.resolve())
            ):
                listing.outside.append(str(inside))
    listing.images = [(labels[file.parts[0]], folder / file) for file in sorted(files)]
    return listing


def _refuse_link(path: Path, *, linked: bool) -> None:
    if linked:
        raise UserError(
            f"{printable(path)} is a link, behind which DVC sees no change. Put the images themselves there, or name "
            "the folder above them in 'prepare.root'. (params.yaml)"
        )


def _tell(dataset: str, folder: Path, listing: Listing) -> None:
    """Prints one sentence for each kind of file that is left out, and one for links that lead out of the folder."""
    for reason, names in sorted(listing.left_out.items()):
        print(
            f"{dataset}: left out {len(names)}, each of which is {reason}: {raw_files.some(sorted(names))}"
        )
    if listing.outside:
        names = raw_files.some(sorted(listing.outside))
        print(
            f"{dataset}: read {len(listing.outside)} links to files outside {printable(folder)}: {names}"
        )


def _judge(dataset: str, broken: list[str], on_unreadable: str) -> None:
    """
    Raises:
        UserError: with the first sentences and the number of all, unless such images are to be skipped.
    """
    told = broken[: raw_files.MOST_NAMES]
    if on_unreadable == "skip":
        print(
            f"{dataset}: skipped {len(broken)} images that cannot be read (prepare.on_unreadable: skip)"
        )
        print("\n".join(told))
        return
    count = "1 image" if len(broken) == 1 else f"{len(broken)} images"
    last = f"{dataset} has {count} that cannot be read. Mend or remove them, or set 'prepare.on_unreadable' to 'skip'."
    raise UserError("\n".join([*told, f"{last} (params.yaml)"]))


def _name(path: Path) -> int:
    """63 bits: never negative, for -1 marks synthetic images. The bytes of the name: it need not be UTF-8."""
    return int.from_bytes(hashlib.sha256(os.fsencode(path.as_posix())).digest()[:8]) >> 1
