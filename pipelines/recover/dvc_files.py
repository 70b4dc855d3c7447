"""Mends the files that DVC left torn: databases, dvc.lock, locks, half outputs, temporary files."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipelines import scratch
from pipelines.errors import UserError
from pipelines.files import write_text

DVC = Path(".dvc/tmp")
CACHE = Path(".dvc/cache")
RESULTS = Path("dvc.lock")
OUTPUTS = ("data", "models", "reports")
# files that are not yet renamed, as dvc_objects.fs.utils.tmp_fname names them
TEMPORARY = re.compile(r".*\.[\w-]{22}\.tmp")
OBJECT = re.compile(r"[0-9a-f]{30}(\.dir)?")
# of a cached file that is whole: DVC sets it last
PROTECTED = 0o444
MERGE_MARKS = ("<<<<<<<", "=======", ">>>>>>>")
# a stage's name in dvc.lock
STAGE = re.compile(r"  [^ ]")


def mend() -> Iterator[str]:
    """Mends what is DVC's, and yields a phrase for each thing that was torn.

    Outputs come after dvc.lock, which describes them, and before the rwlock that names them.

    Raises:
        UserError: DVC cannot read a file of its own that no crash explains.
    """
    if not DVC.exists():
        return
    yield from _databases()
    yield from _lock_file()
    locks = [file for file in (DVC / "rwlock", DVC / "exps/rwlock") if file.exists()]
    if any(_written(file) != set() for file in locks):
        yield from _half_outputs(locks)
    for file in locks:
        if not _idle(file):
            file.unlink()
            yield f"{file}, left by a DVC that died"
    yield from _temporary_files()
    yield from _cached_files()
    for file in sorted((DVC / "exps/run").rglob("*.run")):
        if _json(file) is None:
            file.unlink()
            yield f"{file}, which was cut off"


def _databases() -> Iterator[str]:
    """Removes broken databases of hashes, which DVC keeps outside the checkout and makes anew."""
    from dvc.config import Config
    from dvc.fs import LocalFileSystem
    from dvc.repo import Repo

    # DVC names the folder by its time
    birth = DVC / "btime"
    if not birth.exists():
        return
    # stands for a Repo, which could not be opened while its files are torn
    stand_in = SimpleNamespace(
        config=Config(str(DVC.parent.resolve())),
        fs=LocalFileSystem(),
        root_dir=str(Path.cwd()),
        _btime=os.path.getmtime(birth),
    )
    place = Repo.__dict__["site_cache_dir"].fget(stand_in)
    for file in sorted(Path(place).rglob("cache.db")):
        if not _opens(file):
            shutil.rmtree(file.parent)
            yield f"a database of hashes ({file.parent.name})"


def _opens(database: Path, timeout: float = 5.0) -> bool:
    """Returns whether a database is whole; `timeout` in seconds. A busy one counts as whole."""
    try:
        with contextlib.closing(sqlite3.connect(database, timeout=timeout)) as connection:
            return connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.OperationalError:
        # somebody else is at work on it
        return True
    except sqlite3.DatabaseError:
        return False


def _lock_file() -> Iterator[str]:
    """Cuts dvc.lock after its last whole stage.

    DVC writes it from top to bottom, so all stages but the last one that is there are whole.
    """
    if not RESULTS.exists():
        return
    lines = RESULTS.read_text(errors="replace").splitlines(keepends=True)
    starts = _stage_starts(lines)
    # marks of a merge, or a head that DVC does not take, are no crash's: DVC reports them
    merged = any(line.startswith(MERGE_MARKS) for line in lines)
    head = _parsed("".join(lines[: starts[0]])) if starts else {}
    begins_well = not starts or (
        head.keys() >= {"schema", "stages"} and _is_valid({**head, "stages": {}})
    )
    if not begins_well or merged or _readable(lines):
        return
    # drops stages from the end until DVC takes the rest
    whole = len(starts) - 1
    while whole > 0 and not _readable(lines[: starts[whole]]):
        whole -= 1
    if whole > 0:
        write_text(RESULTS, "".join(lines[: starts[whole]]))
    else:
        RESULTS.unlink()
    yield (
        f"{RESULTS}, which was cut off ({max(whole, 0)} stages of it are kept, the others come "
        "from the run cache)"
    )


def _readable(lines: list[str]) -> bool:
    """Returns whether DVC takes the head and the last stage of a dvc.lock.

    A file that was cut off is whole before that.
    """
    starts = _stage_starts(lines)
    if not starts:
        return _is_valid(_parsed("".join(lines)))
    return _is_valid(_parsed("".join(lines[: starts[0]] + lines[starts[-1] :])))


def _stage_starts(lines: list[str]) -> list[int]:
    """Returns the numbers of the lines that name a stage.

    >>> _stage_starts(["schema: '2.0'", "stages:", "  prepare@digits:", "    cmd: x"])
    [2]
    """
    return [number for number, line in enumerate(lines) if STAGE.match(line)]


def _is_valid(content: dict) -> bool:
    """Returns whether DVC takes this content of a dvc.lock."""
    from dvc.dvcfile import Lockfile
    from dvc.exceptions import DvcException

    try:
        return bool(Lockfile.validate(content, str(RESULTS)))
    except DvcException:
        return False


def _parsed(text: str) -> dict:
    """Returns what YAML text holds; empty where it is not YAML, or not of names and values."""
    try:
        content = YAML(typ="safe").load(text)
    except YAMLError:
        return {}
    return content if isinstance(content, dict) else {}


def _half_outputs(locks: list[Path]) -> Iterator[str]:
    """Removes outputs that may be half there.

    Those are named by a lock, or are any where a lock is torn, and are not what dvc.lock says. DVC
    removes such an output itself before it makes it again. Until then a stage that is run by hand
    would read it.

    Raises:
        UserError: DVC cannot read dvc.yaml, or what of dvc.lock no crash explains.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    named = [_written(file) for file in locks]
    half = []
    try:
        with Repo() as repo:
            for out in repo.index.outs:
                possible = None in named or any(out.fs_path in paths for paths in named)
                if possible and out.exists and out.changed_checksum():
                    half.append(Path(out.fs_path))
    except DvcException as error:
        raise UserError(
            f"DVC stopped: {error}. Mend that, then run `make recover` again."
        ) from None
    for output in half:
        scratch.remove_whole(output)
        yield f"{output.relative_to(Path.cwd())}, which DVC had not finished"


def _written(lock: Path) -> set[str] | None:
    """Returns the outputs that DVC was writing when it died; None where the file does not say."""
    content = _json(lock)
    if not isinstance(content, dict) or not isinstance(content.get("write", {}), dict):
        return None
    return set(content.get("write", {}))


def _idle(lock: Path) -> bool:
    """Returns whether a lock names no output, so that no DVC died while it held it."""
    content = _json(lock)
    return isinstance(content, dict) and not any(content.values())


def _temporary_files() -> Iterator[str]:
    """Removes files that DVC had not yet renamed.

    Beside or in an output they change what a later stage depends on.
    """
    candidates = list(Path().glob("*.tmp"))
    for folder in (*OUTPUTS, CACHE):
        candidates += Path(folder).rglob("*.tmp")
    leftovers = [file for file in candidates if TEMPORARY.fullmatch(file.name)]
    for file in leftovers:
        file.unlink()
    if leftovers:
        yield f"{len(leftovers)} temporary file{'' if len(leftovers) == 1 else 's'} of DVC"


def _cached_files() -> Iterator[str]:
    """Removes cached files that DVC had not yet protected, if their names are not their hashes."""
    for file in sorted((CACHE / "files/md5").glob("[0-9a-f][0-9a-f]/*")):
        about = file.stat()
        whole = stat.S_IMODE(about.st_mode) == PROTECTED and about.st_size
        if whole or not OBJECT.fullmatch(file.name):
            continue
        with file.open("rb") as content:
            content_hash = hashlib.file_digest(content, "md5").hexdigest()
        if content_hash != f"{file.parent.name}{file.name}".removesuffix(".dir"):
            file.unlink()
            yield f"{file}, which was cut off"


def _json(file: Path) -> object:
    """Returns what a file holds; None where it is not JSON."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None
