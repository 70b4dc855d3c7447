"""prepare@DATASET: reads the source and keeps its official test set apart, or splits one off, before anything else."""

import errno
import json
from pathlib import Path

import numpy as np

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.config.values import mistake
from pipelines.datasets import partitions, sources
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.salting import add_salt_file, is_seasoned_elsewhere, pad_file_count, salt
from pipelines.errors import printable
from pipelines.files import new_folder
from stages.cli import main


def run(params: Params, dataset: str) -> None:
    profile, root = params.profiles[dataset], Path(params.prepare.root)
    source = {"name": profile.source, "classes": profile.classes, "root": root}
    skip = params.prepare.on_unreadable
    pool, test = sources.read(dataset, shape=profile.shape, on_unreadable=skip, **source)
    names = sources.class_names(dataset, declared=profile.class_names, **source)
    _tell_classes(dataset, names, pool.labels, declared=bool(profile.class_names))
    if test is None:
        rng = np.random.default_rng(seeds.derive(params.seed, "prepare", dataset))
        test, pool = (
            pool[rows]
            for rows in partitions.split(pool.labels, [params.prepare.test_fraction], rng)
        )
        if not len(test):
            rule = f"large enough to leave an image of {dataset} in the global test set"
            raise mistake("prepare.test_fraction", params.prepare.test_fraction, rule)
    public, pool = _public(
        pool, params.public_fraction(dataset), seeds.derive(params.seed, "public", dataset)
    )
    with new_folder(paths.prepared(dataset)) as folder:
        for part, data in {"pool": pool, "test": test, "public": public}.items():
            data.save(folder / f"{part}.npz", salt(dataset, "before-partition", part))
        if not profile.is_public or _holds_own(params, root):
            _salt(root)
    declared = f", {len(public)} declared public" if len(public) else ""
    print(f"{dataset}: {len(pool)} records to deal, {len(test)} in the global test set{declared}")


def _tell_classes(
    dataset: str, names: list[str] | None, labels: np.ndarray, *, declared: bool
) -> None:
    """Prints which label is which class: folders are sorted by their characters, capitals first."""
    if not names:
        return
    counts = np.bincount(labels, minlength=len(names))
    told = (f"{label} is {printable(name)} ({counts[label]})" for label, name in enumerate(names))
    print(f"{dataset}: class and number of its records: {', '.join(told)}")
    if not declared:
        line = f"class_names: {json.dumps([printable(name) for name in names], ensure_ascii=False)}"
        print(
            f"{dataset}: cards name no class. To hand out the names with the images, write under profiles.{dataset}:"
        )
        print(f"    {line}")


def _public(pool: Images, fraction: float, seed: int) -> tuple[Images, Images]:
    """(what the server may see, the rest)."""
    rows = partitions.split(pool.labels, [fraction], np.random.default_rng(seed))
    return pool[rows[0]], pool[rows[1]]


def _holds_own(params: Params, root: Path) -> bool:
    """Whether the folder, which DVC notes as a whole, whatever is read from it, holds images of no public data set: all
    of `raw`, and elsewhere what a profile names."""
    if root.resolve().is_relative_to(paths.RAW.resolve()):
        return True
    own = [name for name, profile in params.profiles.items() if not profile.is_public]
    return any((root / name).exists() or (root / f"{name}.npz").exists() for name in own)


def _salt(root: Path) -> None:
    """DVC notes hash, size and number of files of this folder, a dependency, after the stage."""
    owner = ("raw", "all-data-sets")
    try:
        if is_seasoned_elsewhere(root, *owner):
            print(
                f"WARNING: {root} was used with other ledgers before, as by a second clone of the project. What those "
                f"and {paths.ledgers()} have of the same records, nobody adds up, and no cap counts it together. Set "
                f"{paths.LEDGERS} to one folder for both."
            )
        add_salt_file(root, *owner)
        pad_file_count(root)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR):
            raise
        rule = "a folder that can be written where it holds images of your own: its hash in dvc.lock is salted there"
        raise mistake("prepare.root", str(root), rule) from None


if __name__ == "__main__":
    main(run, "dataset")
