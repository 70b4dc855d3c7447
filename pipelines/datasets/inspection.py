"""Looks at a user's own images before they have a profile: their classes, sizes, sites and damages.

Nothing is written. What is found is private to the owner of the images, and is printed alone.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from pipelines.config.data import channels_first
from pipelines.datasets import image_folder, labelled_images, npz_reader, npz_source, owners
from pipelines.datasets.picture_file import opened
from pipelines.errors import UserError


@dataclass
class Findings:
    """Holds what was found of a data set.

    Attributes:
        source: `folder`, `site_folder` or `npz`, as a profile names it.
        names: The names of the classes by label; None where the file has none.
        labels: The label of each readable record, int64 [n].
        sites: The owner of each readable record, or None if nothing names one.
        sides: (height, width) of each readable image.
        channels: Of the images: 1 where all are grey.
        broken: A sentence for each image that cannot be read.
        left_out: What is no image, or lies where none is read, by the reason.
        official_test: The number of images of the file's own test part.
    """

    source: str
    names: list[str] | None
    labels: np.ndarray
    sites: np.ndarray | None
    sides: np.ndarray
    channels: int
    broken: list[str] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    official_test: int = 0

    @property
    def classes(self) -> int:
        """Returns how many classes there are."""
        return len(self.names) if self.names else int(self.labels.max(initial=-1)) + 1

    @property
    def by_site(self) -> dict[str, int]:
        """Returns {site: its number of readable records}, sorted by the sites' names."""
        return {} if self.sites is None else dict(sorted(Counter(self.sites.tolist()).items()))


def look(root: Path, dataset: str, *, by_site: bool | None = None) -> Findings:
    """Returns what is found of a data set in the folder of raw files.

    Args:
        root: The folder of raw files.
        dataset: The data set's name: of its folder, or of its file without `.npz`.
        by_site: Whether the class folders lie in a folder per site; None: as the folders look.

    Raises:
        UserError: There is neither, or both, or what is there cannot be read at all.
    """
    folder = root / dataset
    file = root / f"{dataset}.npz"
    if folder.is_dir() and file.exists():
        raise UserError(f"Both {folder} and {file} are there. Keep one of them.")
    if file.exists():
        return _of_npz(root, dataset)
    return _of_folder(folder, looks_like_sites(folder) if by_site is None else by_site)


def looks_like_sites(folder: Path) -> bool:
    """Returns whether the folders of a data set are those of sites, which hold folders of classes.

    They are if no image lies in them directly, and two of them have a folder of one name. Where a
    table names the owners, they are those of classes.
    """
    if (folder / owners.TABLE).exists():
        return False
    inner = Counter()
    for name in image_folder.classes(folder):
        if any(image_folder.is_image(path) for path in (folder / name).iterdir()):
            return False
        inner.update(image_folder.folders(folder / name))
    return any(count > 1 for count in inner.values())


def _of_folder(folder: Path, by_site: bool) -> Findings:
    names = image_folder.classes(folder, by_site=by_site)
    listing = image_folder.listing(folder, names, by_site)
    file_owners = image_folder.owners_of(folder, listing, by_site)
    readable = []
    sides = []
    broken = []
    channels = 1
    for number, (_, file) in enumerate(tqdm(listing.images, desc=folder.name, disable=None)):
        try:
            image = opened(file, "RGB")
        except UserError as error:
            broken.append(str(error))
            continue
        readable.append(number)
        sides.append((image.height, image.width))
        if channels == 1 and _has_colour(np.asarray(image)):
            channels = 3
    labels = np.array([label for label, _ in listing.images], np.int64)[readable]
    return Findings(
        "site_folder" if by_site else "folder",
        names,
        labels,
        None if file_owners is None else np.array(file_owners, np.str_)[readable],
        np.array(sides, np.int64).reshape(-1, 2),
        channels,
        broken,
        listing.left_out,
    )


def _of_npz(root: Path, dataset: str) -> Findings:
    records, test = npz_source.read(root=root, dataset=dataset)
    shape = records.images.shape[1:]
    if channels_first(shape):
        raise npz_reader.channels_are_first(f"The images of {dataset}.npz", shape)
    height, width, channels = shape
    return Findings(
        "npz",
        labelled_images.class_names(root / f"{dataset}.npz"),
        records.labels,
        records.owners,
        np.tile([[height, width]], (len(records), 1)),
        channels,
        official_test=0 if test is None else len(test),
    )


def _has_colour(pixels: np.ndarray) -> bool:
    """Returns whether the channels of an image [H, W, 3] differ anywhere."""
    return bool((pixels != pixels[..., :1]).any())
