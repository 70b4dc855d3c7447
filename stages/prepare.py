"""prepare@DATASET: reads the source and sets its official test set apart, before anything else.

Where there is none, a test set is split off.
"""

import errno
import json
from pathlib import Path

import numpy as np

from pipelines import paths
from pipelines.config import Params
from pipelines.config.values import mistake
from pipelines.datasets import preparation, raw_files
from pipelines.datasets.salting import add_salt_file, is_seasoned_elsewhere, pad_file_count, salt
from pipelines.errors import printable
from pipelines.files import new_folder
from stages.cli import main


def run(params: Params, dataset: str) -> None:
    """Writes the pool, the global test set and the public images."""
    profile = params.profiles[dataset]
    root = Path(params.prepare.root)
    data = preparation.prepared(params, dataset)
    _tell_classes(dataset, data.names, data.read.labels, declared=bool(profile.class_names))
    _tell_sites(dataset, data.read.owners)
    with new_folder(paths.prepared(dataset)) as folder:
        for part in ("pool", "test", "public"):
            # only what is dealt to clients needs its owners
            of_clients = part == "pool"
            secret = salt(dataset, "before-partition", part)
            getattr(data, part).save(folder / f"{part}.npz", secret, with_owners=of_clients)
        if not profile.is_public or _holds_own(params, root):
            _salt(root)
    declared = f", {len(data.public)} declared public" if len(data.public) else ""
    print(
        f"{dataset}: {len(data.pool)} records to deal, {len(data.test)} in the global test set"
        f"{declared}"
    )


def _tell_classes(
    dataset: str, names: list[str] | None, labels: np.ndarray, *, declared: bool
) -> None:
    """Prints which label is which class: folders are sorted by their characters, capitals first."""
    if not names:
        return
    counts = np.bincount(labels, minlength=len(names))
    shown = list(map(printable, names))
    phrases = [f"{label} is {name} ({counts[label]})" for label, name in enumerate(shown)]
    print(f"{dataset}: class and number of its records: {', '.join(phrases)}")
    if not declared:
        print(
            f"{dataset}: cards name no class. To hand out the names with the images, write under "
            f"profiles.{dataset}:"
        )
        print(f"    class_names: {json.dumps(shown, ensure_ascii=False)}")


def _tell_sites(dataset: str, owners: np.ndarray | None) -> None:
    """Prints the sites that own the records, the first of them by name."""
    if owners is not None:
        sites, counts = np.unique(owners, return_counts=True)
        phrases = [f"{site} ({count})" for site, count in zip(sites, counts)]
        print(f"{dataset}: site and number of its records: {raw_files.some(phrases)}")


def _holds_own(params: Params, root: Path) -> bool:
    """Returns True if the raw folder may hold non-public images.

    DVC hashes the whole folder, so it matters even if this stage reads other files. `raw/` counts
    as private; another folder does if it contains a data set of an `npz` or `folder` profile.
    """
    if root.resolve().is_relative_to(paths.RAW.resolve()):
        return True
    for name, profile in params.profiles.items():
        holds = (root / name).exists() or (root / f"{name}.npz").exists()
        if holds and not profile.is_public:
            return True
    return False


def _salt(root: Path) -> None:
    """Adds a salt and padding to the raw folder.

    DVC notes hash, size and number of files of this folder, a dependency, after the stage.
    """
    owner = ("raw", "all-data-sets")
    try:
        if is_seasoned_elsewhere(root, *owner):
            print(
                f"WARNING: {root} was used with other ledgers before, as by a second clone of the "
                f"project. What those and {paths.ledgers()} have of the same records, nobody adds "
                f"up, and no cap counts it together. Set {paths.LEDGERS} to one folder for both."
            )
        add_salt_file(root, *owner)
        pad_file_count(root)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR):
            raise
        rule = (
            "a folder that can be written where it holds images of your own: its hash in dvc.lock "
            "is salted there"
        )
        raise mistake("prepare.root", str(root), rule) from None


if __name__ == "__main__":
    main(run, "dataset")
