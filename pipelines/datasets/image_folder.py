"""Reads the user's own images from a folder per class, `ROOT/DATASET/CLASS/**`.

With a folder per site these are `ROOT/DATASET/SITE/CLASS/**`. Images may have any size and mode.
Class names in the order of their characters are labels 0, 1, 2 and so on. A file is an image if its
name ends like one; `raw/README.md` says what becomes of the others. The picture files are read by
`picture_file`, and the owners of the images by `owners`.
"""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from pipelines.datasets import owners, raw_files
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.picture_file import ENDINGS, OTHER_ENDINGS, picture
from pipelines.errors import UserError, printable


@dataclass
class Listing:
    """Holds the files in the folder of a data set.

    Attributes:
        images: (label, path) of each file that is an image by its name, in the order of the
            records.
        left_out: What is no image, or lies where none is read, by the reason.
        outside: Links to files elsewhere, which are read.
    """

    images: list[tuple[int, Path]] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    outside: list[str] = field(default_factory=list)

    def leave(self, reason: str, name: str) -> None:
        """Notes a file that is left out."""
        self.left_out.setdefault(reason, []).append(name)


def read(
    *,
    root: Path,
    dataset: str,
    shape: list[int],
    on_unreadable: str = "fail",
    by_site: bool = False,
    **_,
) -> tuple[Images, None]:
    """Returns every image, resized to `shape`, and prints what was left out.

    The owner of a record is the site in whose folder it lies, or else what `clients.csv` says.

    A record's id is a hash of its path below the folder, so that files which come and go rename no
    other record. The path names the class: a record that changes class is another record, one
    removed and one added.

    Args:
        root: The folder of raw files.
        dataset: The data set's name, which is its folder's name.
        shape: [height, width, channels] of the images to return.
        on_unreadable: "fail", or "skip" to leave out the images that cannot be read.
        by_site: Whether the class folders lie in a folder per site.

    Raises:
        UserError: There is no such folder or no class in it, a link where DVC would not see
            changes, unreadable images, or a `clients.csv` that does not fit them.
    """
    folder = root / dataset
    listed = listing(folder, classes(folder, by_site=by_site), by_site)
    _tell(dataset, folder, listed)
    file_owners = owners_of(folder, listed, by_site)
    images = np.empty((len(listed.images), *shape), np.uint8)
    readable = []
    broken = []
    for number, (label, file) in enumerate(tqdm(listed.images, desc=dataset, disable=None)):
        try:
            images[len(readable)] = picture(file, shape)
        except UserError as error:
            broken.append(str(error))
        else:
            readable.append((number, label, _name(file.relative_to(folder))))
    if broken:
        _judge(dataset, broken, on_unreadable)
    numbers, labels, ids = np.array(readable, np.int64).reshape(-1, 3).T
    record_owners = None if file_owners is None else np.array(file_owners, np.str_)[numbers]
    records = Images(images[: len(readable)], labels.copy(), ids.copy(), record_owners)
    return records, None


def classes(folder: Path, *, by_site: bool = False) -> list[str]:
    """Returns the names of the class folders: the first is label 0.

    Args:
        folder: The folder of the data set.
        by_site: Whether the class folders lie in a folder per site. A site may lack classes.

    Raises:
        UserError: The folder is missing or has none.
    """
    if not folder.is_dir():
        raise UserError(f"{printable(folder)} is missing. Put a folder per class there.")
    names = folders(folder)
    if not names:
        raise UserError(f"{printable(folder)} holds no folder. Put one per class there.")
    if by_site:
        names = set().union(*(folders(folder / site) for site in names))
        if not names:
            raise UserError(
                f"{printable(folder)} holds no folder of a class. Put a folder per class into the "
                "folder of each site."
            )
    return sorted(names)


def folders(folder: Path) -> list[str]:
    """Returns the names of the folders in a folder, but for hidden ones."""
    names = []
    for path in folder.iterdir():
        if path.is_dir() and not path.name.startswith("."):
            names.append(path.name)
    return names


def owners_of(folder: Path, listed: Listing, by_site: bool) -> list[str] | None:
    """Returns the owner of each listed image, or None if nothing names one.

    Args:
        folder: The folder of the data set.
        listed: Its files.
        by_site: Whether the class folders lie in a folder per site.

    Raises:
        UserError: The table of owners does not fit the images.
    """
    inside = [file.relative_to(folder) for _, file in listed.images]
    if not by_site:
        return owners.from_table(folder, [file.as_posix() for file in inside])
    if (folder / owners.TABLE).exists():
        raise UserError(
            f"{printable(folder / owners.TABLE)} must not lie beside the folders of sites, which "
            "name the owners already. Remove it, or set 'source' to folder."
        )
    return [file.parts[0] for file in inside]


def listing(folder: Path, names: list[str], by_site: bool) -> Listing:
    """Lists the files in the folder of a data set.

    Args:
        folder: The folder.
        names: The names of the class folders by label.
        by_site: Whether the class folders lie in a folder per site.

    Raises:
        UserError: There is a link behind which DVC would see no change.
    """
    # how many folders lie above the one that names the class
    depth = 1 if by_site else 0
    listed = Listing()
    labels = {name: label for label, name in enumerate(names)}
    files = []
    _refuse_link(folder, linked=folder.is_symlink())
    for entry in raw_files.below(folder):
        path = Path(entry.path)
        inside = path.relative_to(folder)
        is_folder = raw_files.is_folder(entry)
        _refuse_link(path, linked=entry.is_symlink() and is_folder)
        if any(part.startswith(".") for part in inside.parent.parts):
            continue
        if entry.name.startswith("."):
            listed.leave("hidden by the dot before its name", str(inside))
        elif not is_folder:
            if inside == Path(owners.TABLE):
                continue
            reason = _reason_to_leave(entry, inside, depth)
            if reason:
                listed.leave(reason, str(inside))
            else:
                files.append(inside)
                if _leads_out(entry, folder):
                    listed.outside.append(str(inside))
    for file in sorted(files):
        listed.images.append((labels[file.parts[depth]], folder / file))
    return listed


def _reason_to_leave(entry: os.DirEntry, inside: Path, depth: int) -> str | None:
    """Returns why a file is not read as an image; None if it is.

    Args:
        entry: The file.
        inside: Its path below the folder of the data set.
        depth: How many folders lie above the one that names the class.
    """
    odd = raw_files.oddity(entry)
    if odd in raw_files.SPECIAL.values():
        return odd
    if not is_image(inside):
        return "no image by the ending of its name"
    if len(inside.parts) <= depth + 1:
        return "an image in no class folder"
    return None


def is_image(path: Path) -> bool:
    """Returns whether a file is an image by the ending of its name."""
    return path.suffix.lower() in (*ENDINGS, *OTHER_ENDINGS)


def _leads_out(entry: os.DirEntry, folder: Path) -> bool:
    """Returns True if the entry is a link to a file outside the folder."""
    if not entry.is_symlink() or raw_files.oddity(entry):
        return False
    return not Path(entry.path).resolve().is_relative_to(folder.resolve())


def _refuse_link(path: Path, *, linked: bool) -> None:
    if linked:
        raise UserError(
            f"{printable(path)} is a link, behind which DVC sees no change. Put the images "
            "themselves there, or name the folder above them in 'prepare.root'. (params.yaml)"
        )


def _tell(dataset: str, folder: Path, listed: Listing) -> None:
    """Prints a sentence for each kind of file that is left out, and one for links that lead out."""
    for reason, names in sorted(listed.left_out.items()):
        first = raw_files.some(sorted(names))
        print(f"{dataset}: left out {len(names)}, each of which is {reason}: {first}")
    if listed.outside:
        names = raw_files.some(sorted(listed.outside))
        print(
            f"{dataset}: read {len(listed.outside)} links to files outside "
            f"{printable(folder)}: {names}"
        )


def _judge(dataset: str, broken: list[str], on_unreadable: str) -> None:
    """Prints the first sentences about broken images if these are to be skipped.

    Raises:
        UserError: With the first sentences and the number of all, if they are not.
    """
    first = broken[: raw_files.MOST_NAMES]
    if on_unreadable == "skip":
        print(
            f"{dataset}: skipped {len(broken)} images that cannot be read "
            "(prepare.on_unreadable: skip)"
        )
        print("\n".join(first))
        return
    count = "1 image" if len(broken) == 1 else f"{len(broken)} images"
    last = (
        f"{dataset} has {count} that cannot be read. Mend or remove them, or set "
        "'prepare.on_unreadable' to 'skip'. (params.yaml)"
    )
    raise UserError("\n".join([*first, last]))


def _name(path: Path) -> int:
    """Returns the id of a record: 63 bits of a hash of its path, never negative.

    -1 marks synthetic images. The bytes of the name are hashed: it need not be UTF-8.
    """
    return int.from_bytes(hashlib.sha256(os.fsencode(path.as_posix())).digest()[:8]) >> 1
