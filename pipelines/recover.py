"""Mends what a kill, a full disk or a crash left torn, and nothing else; the ledgers prove that nothing is lost.

    python -m pipelines.recover      # make recover; make repro begins with it

DVC 3.67.1 rewrites two files in place: `.dvc/tmp/rwlock` and `dvc.lock`. It fills an output file by file where it takes
one back from its cache, and leaves temporary names beside files that it renames. Ours are folders in the making, which
hold private records, and the last line of a ledger. Results that are removed here come back from DVC's run cache or are
made again; releases come back from the ledgers' store.
"""

import contextlib
import errno
import fcntl
import hashlib
import itertools
import json
import os
import re
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipelines import paths, releases, scratch
from pipelines.errors import UserError, told_in_a_sentence
from pipelines.files import write_text
from pipelines.privacy.ledger import Ledger, LedgerError

DVC = Path(".dvc/tmp")
CACHE = Path(".dvc/cache")
RESULTS = Path("dvc.lock")
OUTPUTS = ("data", "models", "reports")
TEMPORARY = re.compile(r".*\.[\w-]{22}\.tmp")  # as dvc_objects.fs.utils.tmp_fname names them
OBJECT = re.compile(r"[0-9a-f]{30}(\.dir)?")
PROTECTED = 0o444  # of a cached file that is whole: DVC sets it last
MERGE_MARKS = ("<<<<<<<", "=======", ">>>>>>>")
STAGE = re.compile(r"  [^ ]")  # a stage's name in dvc.lock
GIT_WAITS = 1.0  # seconds for which no live Git holds its index


def main() -> None:
    with told_in_a_sentence():
        mended = recover()
        print(f"Recovered: {'; '.join(mended)}. {_proof()}" if mended else "Nothing to recover.")


def recover() -> list[str]:
    """Mends the checkout in the working directory.

    Returns:
        What was torn, a phrase each; empty where all is whole.

    Raises:
        UserError: DVC or a stage is at work here, or a ledger was tampered with: nothing was changed then. Or DVC
            cannot read a file of its own that no crash explains.
    """
    with _alone():
        before = {ledger.path: _entries(ledger) for ledger in _ledgers()}
        mended = [what for mend in (_ledger_tails, _dvc, _folders, _git) for what in mend()]
        after = {ledger.path: _entries(ledger) for ledger in _ledgers()}
    if any(after.get(path, [])[: len(entries)] != entries for path, entries in before.items()):
        raise UserError(
            "A ledger holds other releases than before the recovery. Bring `ledgers/` back from a copy."
        )
    return mended


def _proof() -> str:
    """A sentence on the ledgers, which were read line by line and hold what they held before."""
    entries = {ledger.path: _entries(ledger) for ledger in _ledgers()}
    count = sum(entry["event"] == "open" for each in entries.values() for entry in each)
    lost = sum(len(releases.unstored(folder)) for folder in {path.parent for path in entries})
    gone = (
        f" {lost} of them have no stored result here: a run over a network keeps none."
        if lost
        else ""
    )
    return f"The ledgers are whole: {count} release{'' if count == 1 else 's'}, nothing was spent.{gone}"


def _ledgers() -> list[Ledger]:
    # no total is asked for, so that any delta does
    return [Ledger(path, delta=1e-5) for path in sorted(paths.ledgers().glob("*/*.jsonl"))]


def _entries(ledger: Ledger) -> list[dict]:
    """
    Raises:
        UserError: the ledger was tampered with, or has a release twice.
    """
    try:
        entries = ledger.entries()
    except LedgerError as error:
        raise UserError(str(error)) from None
    acts = [(entry["fingerprint"], entry["event"]) for entry in entries]
    if len(acts) != len(set(acts)):
        raise UserError(f"{ledger.path} has a release twice. Bring it back from a copy.")
    return entries


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Holds DVC's lock, so that no DVC begins meanwhile.

    Raises:
        UserError: DVC or a stage is at work.
    """
    refused = UserError(
        "DVC is at work in this checkout: wait until it has ended, or end it. Nothing was changed."
    )
    if not DVC.exists():
        yield
        return
    with (DVC / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise refused from None
        if (
            alive := next(_at_work(), None)
        ) is not None:  # DVC lays its lock down while a stage runs
            raise UserError(str(refused).replace("DVC is", f"DVC or a stage (process {alive}) is"))
        yield


def _at_work() -> Iterator[int]:
    """Processes of this checkout that are DVC's, or a stage that outlived its DVC."""
    here = Path.cwd()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):  # it has ended, or is another user's
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            inside = Path(os.readlink(process / "cwd")).is_relative_to(here)
            if inside and int(process.name) != os.getpid() and _is_work(words):
                yield int(process.name)


def _is_work(words: list[str]) -> bool:
    modules = [name for option, name in itertools.pairwise(words) if option == "-m"]
    command = any(Path(word).name == "dvc" for word in words[:2])  # itself, or Python's script
    return command or any(name == "dvc" or name.startswith("stages.") for name in modules)


def _ledger_tails() -> Iterator[str]:
    """Removes what follows the last newline: its writer died before the line counted."""
    for ledger in _ledgers():
        files = (ledger.path, ledger.chain.head)
        before = [file.read_bytes() if file.exists() else b"" for file in files]
        if before[0].endswith(b"\n") and before[0].count(b"\n") == _lines_at(before[1]):
            continue
        with ledger.chain.locked():
            pass
        if before != [file.read_bytes() if file.exists() else b"" for file in files]:
            yield f"the last line of {ledger.path}, which was never whole"


def _lines_at(head: bytes) -> int:
    with contextlib.suppress(ValueError):
        return json.loads(head)["lines"]
    return 0


def _dvc() -> Iterator[str]:
    """Mends what is DVC's. Outputs come after dvc.lock, which describes them, and before the rwlock that names them."""
    if not DVC.exists():
        return
    yield from _state()
    yield from _results()
    locks = [file for file in (DVC / "rwlock", DVC / "exps/rwlock") if file.exists()]
    if any(_written(file) != set() for file in locks):
        yield from _outputs(locks)
    for file in locks:
        if _idle(file):
            continue
        file.unlink()
        yield f"{file}, left by a DVC that died"
    yield from _temporary()
    yield from _cached()
    for file in sorted((DVC / "exps/run").rglob("*.run")):
        if _json(file) is None:
            file.unlink()
            yield f"{file}, which was cut off"


def _state() -> Iterator[str]:
    """The databases of hashes that DVC keeps outside the checkout: where one is broken it is computed anew."""
    from dvc.config import Config
    from dvc.fs import LocalFileSystem
    from dvc.repo import Repo

    if not (DVC / "btime").exists():  # DVC names the folder by it
        return
    known = {
        "config": Config(str(DVC.parent.resolve())),
        "fs": LocalFileSystem(),
        "root_dir": str(Path.cwd()),
    }
    place = Repo.__dict__["site_cache_dir"].fget(
        SimpleNamespace(**known, _btime=os.path.getmtime(DVC / "btime"))
    )
    for file in sorted(Path(place).rglob("cache.db")):
        if not _opens(file):
            shutil.rmtree(file.parent)
            yield f"a database of hashes ({file.parent.name})"


def _opens(database: Path, timeout: float = 5.0) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(database, timeout=timeout)) as connection:
            return connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.OperationalError:
        # somebody else is at work on it
        return True
    except sqlite3.DatabaseError:
        return False


def _results() -> Iterator[str]:
    """dvc.lock: written from top to bottom, so that all stages but the last one that is there are whole."""
    if not RESULTS.exists():
        return
    lines = RESULTS.read_text(errors="replace").splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if STAGE.match(line)]
    # marks of a merge, or a head that DVC does not take, are no crash's: DVC tells them
    merged = any(line.startswith(MERGE_MARKS) for line in lines)
    head = _parsed("".join(lines[: starts[0]])) if starts else {}
    begins_well = not starts or (
        head.keys() >= {"schema", "stages"} and _is_valid({**head, "stages": {}})
    )
    if not begins_well or merged or _readable(lines):
        return
    whole = next(
        (count for count in range(len(starts) - 1, 0, -1) if _readable(lines[: starts[count]])), 0
    )
    if whole:
        write_text(RESULTS, "".join(lines[: starts[whole]]))
    else:
        RESULTS.unlink()
    yield f"{RESULTS}, which was cut off ({whole} stages of it are kept, the others come from the run cache)"


def _readable(lines: list[str]) -> bool:
    """Returns whether DVC takes the head and the last stage; a file that was cut off is whole before that."""
    starts = [number for number, line in enumerate(lines) if STAGE.match(line)]
    head, last = (lines[: starts[0]], lines[starts[-1] :]) if starts else (lines, [])
    return _is_valid(_parsed("".join(head + last)))


def _is_valid(content: dict) -> bool:
    from dvc.dvcfile import Lockfile
    from dvc.exceptions import DvcException

    try:
        return bool(Lockfile.validate(content, str(RESULTS)))
    except DvcException:
        return False


def _parsed(text: str) -> dict:
    """Empty where it is not YAML, or not of names and values."""
    try:
        content = YAML(typ="safe").load(text)
    except YAMLError:
        return {}
    return content if isinstance(content, dict) else {}


def _written(lock: Path) -> set[str] | None:
    """Outputs that DVC was writing when it died; None where the file does not tell."""
    content = _json(lock)
    if not isinstance(content, dict) or not isinstance(content.get("write", {}), dict):
        return None
    return set(content.get("write", {}))


def _idle(lock: Path) -> bool:
    content = _json(lock)
    return isinstance(content, dict) and not any(content.values())


def _outputs(locks: list[Path]) -> Iterator[str]:
    """Those that may be half there: named by a lock, or any where a lock is torn, and not what dvc.lock says.

    DVC removes such an output itself before it makes it again. Until then a stage that is run by hand would read it.

    Raises:
        UserError: DVC cannot read dvc.yaml, or what of dvc.lock no crash explains.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    named = [_written(file) for file in locks]
    try:
        with Repo() as repo:
            possible = [
                out
                for out in repo.index.outs
                if None in named or any(out.fs_path in each for each in named)
            ]
            half = [Path(out.fs_path) for out in possible if out.exists and out.changed_checksum()]
    except DvcException as error:
        raise UserError(
            f"DVC stopped: {error}. Mend that, then run `make recover` again."
        ) from None
    for folder in half:
        _vanish(folder)
        yield f"{folder.relative_to(Path.cwd())}, which DVC had not finished"


def _temporary() -> Iterator[str]:
    """Files that DVC had not yet renamed: beside or in an output they change what a later stage depends on."""
    folders = [Path(name) for name in (*OUTPUTS, CACHE)]
    leftovers = [
        file
        for folder in folders
        for file in folder.rglob("*.tmp")
        if TEMPORARY.fullmatch(file.name)
    ]
    leftovers += [file for file in Path().glob("*.tmp") if TEMPORARY.fullmatch(file.name)]
    for file in leftovers:
        file.unlink()
    if leftovers:
        yield f"{len(leftovers)} temporary file{'' if len(leftovers) == 1 else 's'} of DVC"


def _cached() -> Iterator[str]:
    """Cached files that are not what their name says: DVC had not yet protected them."""
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


def _folders() -> Iterator[str]:
    """Ours: folders in the making, and what releases that are closed by now needed to go on."""
    if count := scratch.swept():
        yield f"{count} folder{'' if count == 1 else 's'} in the making"
    for folder in {ledger.path.parent for ledger in _ledgers()}:
        for leftover in releases.outlived(folder):
            _vanish(leftover)
            yield f"{leftover}, whose release is made"


def _git() -> Iterator[str]:
    """The lock of Git's index, which a live Git holds for moments."""
    lock = Path(".git/index.lock")
    with contextlib.suppress(FileNotFoundError):
        before = lock.stat()
        time.sleep(GIT_WAITS)
        after = lock.stat()
        if (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns):
            lock.unlink()
            yield f"{lock}, left by a Git that died"


def _vanish(folder: Path) -> None:
    """Removes an output as a whole: a kill in between leaves it where nothing reads it."""
    if not folder.is_dir():
        folder.unlink()
        return
    with scratch.folder(folder.name) as partial:
        try:
            os.replace(folder, partial / "removed")
        except OSError as error:
            # a linked output, or ledgers elsewhere, may lie on another file system
            if error.errno != errno.EXDEV:
                raise
            shutil.rmtree(folder)


def _json(file: Path):
    """Returns what the file holds; None where it is not JSON."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    main()
