"""Checks what `dvc push` would upload, file by file.

Each folder must be whole, unchanged, and hold nothing else. The same is asked of the folder in the
working tree, because people hand it out by hand.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.files import sha256
from pipelines.guard import keys, pools

SUMS = "SHA256SUMS"
IMAGES = "images.npz"
EXPORT = (IMAGES, "grid.png", "card.json", "card.md", SUMS)
INITIAL = ("rounds.safetensors", "rounds.csv", "privacy.json", "health.json", "cards.json")
# of released images; not where the sets stay at their clients
POOL = "pool.npz"
HOLDS = {"data/synthetic": EXPORT, "models/initial": INITIAL}
OPTIONAL = {"data/synthetic": (), "models/initial": (POOL,)}


@dataclass(frozen=True)
class Upload:
    """An output that would be uploaded.

    Attributes:
        path: The output's path, relative to the project.
        stage: The stage that makes it.
        files: Where the bytes of each file lie, by its name in the output. An output that is one
            file has the name "".
    """

    path: str
    stage: str
    files: dict[str, Path]


def cached(root: Path) -> Iterator[Upload]:
    """Yields every output that would be uploaded, as DVC's cache holds it, by dvc.lock.

    What the cache does not hold cannot be uploaded, and is left out.
    """
    from dvc.repo import Repo

    with Repo(str(root)) as repo:
        for out in repo.index.outs:
            content = out.get_obj() if out.can_push and out.hash_info else None
            if not content:
                continue
            hashes = {}
            if out.is_dir_checksum:
                hashes = {"/".join(key): info.value for key, _, info in content}
            files = {}
            for name, value in (hashes or {"": out.hash_info.value}).items():
                blob = Path(out.cache.oid_to_path(value))
                if blob.exists():
                    files[name] = blob
            yield Upload(repo.fs.relpath(out.fs_path, repo.root_dir), out.stage.addressing, files)


def problems(root: Path) -> list[str]:
    """Returns a sentence per file that is missing, changed or strange, or holds a private key."""
    sentences = []
    outputs = list(cached(root))
    exports = [output for output in outputs if output.path.startswith("data/synthetic/")]
    for upload in outputs:
        sentences += _wrong(upload)
        sentences += _strange_images(upload, exports)
        folder = root / upload.path
        if folder.is_dir():
            handed_out = Upload(upload.path, upload.stage, _files_of(folder))
            sentences += _wrong(handed_out)
            sentences += _strange_images(handed_out, exports)
    return list(dict.fromkeys(sentences))


def _files_of(folder: Path) -> dict[str, Path]:
    """Returns the files below a folder by their names in it."""
    files = sorted(file for file in folder.rglob("*") if not file.is_dir())
    return {str(file.relative_to(folder)): file for file in files}


def _wrong(upload: Upload) -> Iterator[str]:
    """Yields a sentence per thing that is wrong with the files of an output."""
    again = f"Make the folder again: `dvc repro --force --single-item {upload.stage}`."
    places = [place for place in HOLDS if upload.path.startswith(f"{place}/")]
    expected = HOLDS[places[0]] if places else ()
    for name, file in upload.files.items():
        for where, finding in keys.search_file(file, f"{upload.path}/{name}".rstrip("/")):
            yield f"{where} {finding}, and it lies where `dvc push` takes what it uploads. {again}"
        if expected and name not in (*expected, *OPTIONAL[places[0]]):
            yield (
                f"{upload.path}/{name} is none of the files that may leave "
                f"({', '.join(expected)}). {again}"
            )
    for name in expected:
        if name not in upload.files:
            yield f"{upload.path} lacks {name}. {again}"
    if expected == EXPORT and set(EXPORT) <= set(upload.files):
        yield from _changed(upload, again)


def _strange_images(upload: Upload, exports: list[Upload]) -> Iterator[str]:
    """Yields a sentence about a pool that holds other images than the exports of its generator."""
    if POOL not in upload.files or not upload.path.startswith("models/initial/"):
        return
    *_, dataset, generator = Path(upload.path).parts
    images = []
    for export in exports:
        if Path(export.path).parts[2::2] == (dataset, generator) and IMAGES in export.files:
            images.append(export.files[IMAGES])
    why = pools.problem(upload.files[POOL], images)
    if why:
        again = f"`dvc repro --force --single-item {upload.stage}`"
        yield f"{upload.path}/{POOL} {why} Make the folder again: {again}."


def _changed(upload: Upload, again: str) -> Iterator[str]:
    """Yields a sentence per file of an export that differs from what its SHA256SUMS says."""
    named = {}
    for line in upload.files[SUMS].read_text(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        named[name] = digest
    for name in sorted({*named, *EXPORT} - {SUMS}):
        if name not in EXPORT:
            yield f"{upload.path}/{SUMS} names {name}, which no export holds. {again}"
        elif name not in named:
            yield f"{upload.path}/{SUMS} does not name {name}. {again}"
        elif sha256(upload.files[name]) != named[name]:
            yield f"{upload.path}/{name} is another than its {SUMS} says. {again}"
