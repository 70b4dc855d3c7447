"""Checks what `dvc push` would upload, file by file.

Each folder must be whole, unchanged, and hold nothing else. The same is asked of the folder in the
working tree, because people hand it out by hand. So it is of the initial models that a user made
with `--method`, or by `stages.train_noisy`, which DVC does not know.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.config.generators import WITH_CLASSIFIER
from pipelines.errors import UserError
from pipelines.files import read_json, sha256
from pipelines.guard import keys, pools
from pipelines.paths import CLASSIFIER, NOISY

if TYPE_CHECKING:
    from dvc.repo import Repo

SUMS = "SHA256SUMS"
IMAGES = "images.npz"
CARDS = "cards.json"
# of an export's folder for other tools
HUB = (
    "huggingface/data/train-00000-of-00001.parquet",
    "huggingface/README.md",
    "huggingface/croissant.json",
)
EXPORT = (IMAGES, "grid.png", "card.json", "card.md", *HUB, SUMS)
# of a generator that releases a classifier, too
EXPORT_WITH_CLASSIFIER = (*EXPORT, CLASSIFIER)
INITIAL = ("rounds.safetensors", "rounds.csv", "privacy.json", "health.json", CARDS)
# of released images; not where the sets stay at their clients
POOL = "pool.npz"
# of a model that clients trained by noisy messages: no set was gathered, and no card
OF_NOISE = tuple(name for name in INITIAL if name != CARDS)
HOLDS = {"data/synthetic": EXPORT, "models/initial": INITIAL}
OPTIONAL = {"data/synthetic": (), "models/initial": (POOL,)}


@dataclass(frozen=True)
class Upload:
    """An output that would be uploaded.

    Attributes:
        path: The output's path, relative to the project.
        stage: The stage that makes it; "" where a user made it by hand.
        files: Where the bytes of each file lie, by its name in the output. An output that is one
            file has the name "".
    """

    path: str
    stage: str
    files: dict[str, Path]

    @property
    def again(self) -> str:
        """Returns a sentence on how to make the output again."""
        command = f"dvc repro --force --single-item {self.stage}"
        if not self.stage:
            *_, dataset, name = Path(self.path).parts
            generator, _, method = name.partition("-")
            of_model = f"stages.meta_train --dataset {dataset} --generator {generator} --method"
            if generator == NOISY:
                of_model = f"stages.train_noisy --dataset {dataset} --algorithm"
            command = f"python -m {of_model} {method}"
        return f"Make the folder again: `{command}`."


def cached(repo: "Repo") -> Iterator[Upload]:
    """Yields every output that would be uploaded, as DVC's cache holds it, by dvc.lock.

    What the cache does not hold cannot be uploaded, and is left out.
    """
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


def problems(root: Path, outputs: list[Upload]) -> list[str]:
    """Returns a sentence per file that is missing, changed or strange, or holds a private key.

    Args:
        root: The checkout.
        outputs: What DVC would upload of it (`cached`).
    """
    sentences = []
    exports = [output for output in outputs if output.path.startswith("data/synthetic/")]
    for upload in outputs:
        sentences += _wrong(upload)
        sentences += _strange_images(upload, exports)
        folder = root / upload.path
        if folder.is_dir():
            handed_out = Upload(upload.path, upload.stage, _files_of(folder))
            sentences += _wrong(handed_out)
            sentences += _strange_images(handed_out, exports)
    for handed_out in _made_by_hand(root, outputs):
        sentences += _wrong(handed_out)
        sentences += _strange_images(handed_out, _exports_at_hand(root, handed_out))
    return list(dict.fromkeys(sentences))


def _made_by_hand(root: Path, outputs: list[Upload]) -> Iterator[Upload]:
    """Yields the initial models that are no output of DVC: GENERATOR-METHOD (`paths.of_method`)."""
    known = {output.path for output in outputs}
    for folder in sorted((root / "models/initial").glob("*/*-*")):
        path = str(folder.relative_to(root))
        if folder.is_dir() and path not in known:
            yield Upload(path, "", _files_of(folder))


def _exports_at_hand(root: Path, model: Upload) -> list[Upload] | None:
    """Returns the exports that a model's pool is made of, or None if one of them is not here.

    The machine of a client has its own export alone, and a submitter's has none.
    """
    *_, dataset, name = Path(model.path).parts
    generator = name.partition("-")[0]
    exports = []
    for client in _clients_of(model):
        path = Path("data/synthetic") / dataset / client / generator
        if not (root / path / IMAGES).exists():
            return None
        exports.append(Upload(str(path), "", {IMAGES: root / path / IMAGES}))
    return exports


def _clients_of(model: Upload) -> list[str]:
    """Returns the clients whose cards lie beside a model; none if they cannot be read."""
    try:
        cards = read_json(model.files[CARDS])
    except (KeyError, UserError):
        return []
    return sorted(cards)


def _files_of(folder: Path) -> dict[str, Path]:
    """Returns the files below a folder by their names in it."""
    files = sorted(file for file in folder.rglob("*") if not file.is_dir())
    return {str(file.relative_to(folder)): file for file in files}


def _wrong(upload: Upload) -> Iterator[str]:
    """Yields a sentence per thing that is wrong with the files of an output."""
    places = [place for place in HOLDS if upload.path.startswith(f"{place}/")]
    expected = HOLDS[places[0]] if places else ()
    optional = OPTIONAL[places[0]] if places else ()
    if places and not upload.stage and Path(upload.path).name.startswith(f"{NOISY}-"):
        expected = OF_NOISE
        optional = ()
    if expected == EXPORT and Path(upload.path).name in WITH_CLASSIFIER:
        expected = EXPORT_WITH_CLASSIFIER
    for name, file in upload.files.items():
        for where, finding in keys.search_file(file, f"{upload.path}/{name}".rstrip("/")):
            lies = "and it lies where `dvc push` takes what it uploads"
            yield f"{where} {finding}, {lies}. {upload.again}"
        if expected and name not in (*expected, *optional):
            yield (
                f"{upload.path}/{name} is none of the files that may leave "
                f"({', '.join(expected)}). {upload.again}"
            )
    for name in expected:
        if name not in upload.files:
            yield f"{upload.path} lacks {name}. {upload.again}"
    if SUMS in expected and set(expected) <= set(upload.files):
        yield from _changed(upload, expected)


def _strange_images(upload: Upload, exports: list[Upload] | None) -> Iterator[str]:
    """Yields a sentence about a pool that holds other images than the exports of its generator.

    Without the exports nothing can be said.
    """
    of_model = POOL in upload.files and upload.path.startswith("models/initial/")
    if not of_model or exports is None:
        return
    *_, dataset, name = Path(upload.path).parts
    generator = name.partition("-")[0]
    images = []
    for export in exports:
        if Path(export.path).parts[2::2] == (dataset, generator) and IMAGES in export.files:
            images.append(export.files[IMAGES])
    why = pools.problem(upload.files[POOL], images)
    if why:
        yield f"{upload.path}/{POOL} {why} {upload.again}"


def _changed(upload: Upload, expected: tuple[str, ...]) -> Iterator[str]:
    """Yields a sentence per file of an export that differs from what its SHA256SUMS says."""
    named = {}
    for line in upload.files[SUMS].read_text(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        named[name] = digest
    for name in sorted({*named, *expected} - {SUMS}):
        if name not in expected:
            yield (
                f"{upload.path}/{SUMS} names {name}, which this export may not hold. {upload.again}"
            )
        elif name not in named:
            yield f"{upload.path}/{SUMS} does not name {name}. {upload.again}"
        elif sha256(upload.files[name]) != named[name]:
            yield f"{upload.path}/{name} is another than its {SUMS} says. {upload.again}"
