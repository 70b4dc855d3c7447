"""Checks what `dvc push` would upload, file by file: whether each folder is whole, unchanged, and holds nothing else.

Part of `python -m pipelines.guard`. The same is asked of the folder in the working tree, which people hand out by hand.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines import keys
from pipelines.files import sha256

SUMS = "SHA256SUMS"
EXPORT = ("images.npz", "grid.png", "card.json", "card.md", SUMS)
INITIAL = ("rounds.safetensors", "rounds.csv", "privacy.json", "health.json")
HOLDS = {"data/synthetic": EXPORT, "models/initial": INITIAL}


@dataclass(frozen=True)
class Upload:
    """An output that would be uploaded.

    Attributes:
        path: of the output, relative to the project.
        stage: the stage that makes it.
        files: {name in the output: where its bytes lie}. An output that is one file has the name "".
    """

    path: str
    stage: str
    files: dict[str, Path]


def cached(root: Path) -> Iterator[Upload]:
    """Every output that would be uploaded, as DVC's cache holds it, by dvc.lock.

    What the cache does not hold cannot be uploaded, and is left out.
    """
    from dvc.repo import Repo

    with Repo(str(root)) as repo:
        for out in repo.index.outs:
            if out.can_push and out.hash_info and (held := out.get_obj()):
                hashes = (
                    {"/".join(key): info.value for key, _, info in held}
                    if out.is_dir_checksum
                    else {}
                )
                hashes = hashes or {"": out.hash_info.value}
                blobs = {name: Path(out.cache.oid_to_path(value)) for name, value in hashes.items()}
                files = {name: blob for name, blob in blobs.items() if blob.exists()}
                yield Upload(
                    repo.fs.relpath(out.fs_path, repo.root_dir), out.stage.addressing, files
                )


def problems(root: Path) -> list[str]:
    """One sentence per file that is missing, changed or strange, or that holds a private key."""
    sentences = []
    for upload in cached(root):
        sentences += _wrong(upload)
        if (root / upload.path).is_dir():
            sentences += _wrong(Upload(upload.path, upload.stage, _lying_in(root / upload.path)))
    return list(dict.fromkeys(sentences))


def _lying_in(folder: Path) -> dict[str, Path]:
    return {
        str(file.relative_to(folder)): file
        for file in sorted(folder.rglob("*"))
        if not file.is_dir()
    }


def _wrong(upload: Upload) -> Iterator[str]:
    again = f"Make the folder again: `dvc repro --force --single-item {upload.stage}`."
    expected = next(
        (names for place, names in HOLDS.items() if upload.path.startswith(f"{place}/")), None
    )
    for name, file in upload.files.items():
        for where, what in keys.found(file, f"{upload.path}/{name}".rstrip("/")):
            yield f"{where} {what}, and it lies where `dvc push` takes what it uploads. {again}"
        if expected and name not in expected:
            yield f"{upload.path}/{name} is none of the files that may leave ({', '.join(expected)}). {again}"
    for name in expected or ():
        if name not in upload.files:
            yield f"{upload.path} lacks {name}. {again}"
    if expected == EXPORT and set(EXPORT) <= set(upload.files):
        yield from _changed(upload, again)


def _changed(upload: Upload, again: str) -> Iterator[str]:
    """Files of an export that are others than its SHA256SUMS says."""
    lines = upload.files[SUMS].read_text(errors="replace").splitlines()
    named = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name in sorted({*named, *EXPORT} - {SUMS}):
        if name not in EXPORT:
            yield f"{upload.path}/{SUMS} names {name}, which no export holds. {again}"
        elif name not in named:
            yield f"{upload.path}/{SUMS} does not name {name}. {again}"
        elif sha256(upload.files[name]) != named[name]:
            yield f"{upload.path}/{name} is another than its {SUMS} says. {again}"
