"""Reads published data sets by way of torchvision: its readers, its checksums, its mirrors.

The archives lie in the root where torchvision puts them and as they come, compressed:
`MNIST/raw/*.gz`, `FashionMNIST/raw/*.gz`, `cifar-10-python.tar.gz`, `cifar-100-python.tar.gz`.
A root that holds them is only read: they are unpacked in `.scratch`, for the time of reading. One
that is absent is downloaded into the root, unless `ROOT/DATASET.npz` holds the images (npz_source).
torchvision takes seconds to import, hence the imports inside.
"""

import http.client
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.datasets import npz_source
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.paths import SCRATCH

CLASSES = {
    "mnist": "MNIST",
    "fashion_mnist": "FashionMNIST",
    "cifar10": "CIFAR10",
    "cifar100": "CIFAR100",
}
# seconds without an answer before a download counts as failed
PATIENCE = 10


@dataclass(frozen=True)
class Archive:
    """Names one file of a data set.

    Attributes:
        path: The path below the root.
        md5: The MD5 of the intact file.
        mirrors: Where torchvision knows the file to be.
    """

    path: Path
    md5: str
    mirrors: tuple[str, ...]


def read(class_name: str, *, root: Path, dataset: str, **_) -> tuple[Images, Images | None]:
    """Returns the training records and the official test set.

    A record's id is its position in the two, one after the other. A copy of the data set in one
    `.npz` stands in for archives that are absent. Nothing tells whether it is the published one.

    Args:
        class_name: The name of torchvision's class.
        root: The folder of raw files.
        dataset: The data set's name.

    Raises:
        UserError: An archive is corrupt, or absent and cannot be downloaded, or the copy is no
            such container.
    """
    from torchvision import datasets

    kind = getattr(datasets, class_name)
    wanted = archives(kind)
    names = [str(archive.path) for archive in wanted]
    has_archive = any((root / name).exists() for name in names)
    if not has_archive and (root / f"{dataset}.npz").exists():
        print(f"{dataset}: read from {root / dataset}.npz, which no published sum checks")
        return npz_source.read(root=root, dataset=dataset)
    for archive in wanted:
        _ready(archive, root, class_name, names)
    with _unpacked(wanted, root) as folder:
        train = kind(folder, train=True)
        test = kind(folder, train=False)
    return _images(train, first_id=0), _images(test, first_id=len(train))


def at_hand(source: str, *, root: Path, dataset: str) -> bool:
    """Returns True if the images are in the root, so that `read` downloads nothing.

    Args:
        source: A name in CLASSES.
        root: The folder of raw files.
        dataset: The data set's name.
    """
    from torchvision import datasets

    wanted = archives(getattr(datasets, CLASSES[source]))
    present = [(root / archive.path).exists() for archive in wanted]
    return all(present) or (not any(present) and (root / f"{dataset}.npz").exists())


def archives(kind: type) -> list[Archive]:
    """Returns what torchvision's class downloads: one tar for CIFAR, four .gz for MNIST's kind."""
    if hasattr(kind, "tgz_md5"):
        return [Archive(Path(kind.filename), kind.tgz_md5, (kind.url,))]
    folder = Path(kind.__name__) / "raw"
    files = []
    for name, md5 in kind.resources:
        mirrors = tuple(mirror + name for mirror in kind.mirrors)
        files.append(Archive(folder / name, md5, mirrors))
    return files


def _ready(archive: Archive, root: Path, data_set: str, files: list[str]) -> None:
    """Makes sure that the intact archive is in the root."""
    from torchvision.datasets.utils import calculate_md5

    path = root / archive.path
    if not path.exists() and (failure := _download(archive, path)):
        raise UserError(
            f"{path} is missing and could not be downloaded ({failure}). Put torchvision's files "
            f"of {data_set} there ({', '.join(files)}), or name the folder that has them in "
            "'prepare.root'. (params.yaml)"
        )
    md5 = calculate_md5(path)
    if md5 != archive.md5:
        raise UserError(
            f"{path} is corrupt: its MD5 is {md5}, the published file's is {archive.md5}. Put an "
            "intact copy there, or delete it to have it downloaded."
        )


def _download(archive: Archive, path: Path) -> str:
    """Fetches the archive, which appears whole or not at all.

    Returns:
        Why it could not be fetched, or an empty string.
    """
    from torchvision.datasets.utils import download_url

    partial = path.with_name(f"{path.name}.part")
    failure = ""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(PATIENCE)
    try:
        for mirror in archive.mirrors:
            try:
                download_url(mirror, partial.parent, filename=partial.name, md5=archive.md5)
                os.replace(partial, path)
                return ""
            except (OSError, RuntimeError, http.client.HTTPException) as error:
                failure = " ".join(str(getattr(error, "reason", None) or error).split())
        return failure
    finally:
        socket.setdefaulttimeout(before)
        if path.parent.exists():
            partial.unlink(missing_ok=True)


@contextmanager
def _unpacked(wanted: list[Archive], root: Path) -> Iterator[str]:
    """Yields a folder for the time being, laid out as torchvision reads it."""
    from torchvision.datasets.utils import extract_archive

    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        for archive in wanted:
            target = Path(folder) / archive.path.parent
            target.mkdir(parents=True, exist_ok=True)
            extract_archive(str(root / archive.path), str(target))
        yield folder


def _images(part, *, first_id: int) -> Images:
    """Returns the images of a torchvision data set, which holds them as [n, H, W (, C)]."""
    images = np.ascontiguousarray(part.data)
    images = images[..., None] if images.ndim == 3 else images
    return Images(images, np.array(part.targets, np.int64), first_id + np.arange(len(images)))
