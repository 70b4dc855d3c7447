"""Has DVC hash the code that stages depend on once in a run, and again where a file of it changes.

Sixty stages depend on the same few folders of code, and DVC hashes them anew for each stage, before
and after it. As in DVC's own database of hashes, a file has changed when its time, its size or its
inode is another.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

# [(path, time of change in nanoseconds, size in bytes, inode)] of all files of a dependency
State = list[tuple[str, int, int, int]]
# what Python writes beside code; .dvcignore leaves it out
COMPILED = "__pycache__"


@contextlib.contextmanager
def hashed_once() -> Iterator[None]:
    """Keeps what DVC found of each dependency that is code, until the block ends."""
    from dvc.output import Output

    build = Output._build
    # {(path, algorithm): (state, what DVC found)}
    known = {}

    def build_once(self, odb, path: str, fs, algorithm: str, **options):
        state = state_of(Path(path)) if self.IS_DEPENDENCY and is_code(Path(path)) else None
        if state is None:
            return build(self, odb, path, fs, algorithm, **options)
        # DVC asks for another algorithm where dvc.lock does not have the dependency yet
        key = path, algorithm
        if key not in known or known[key][0] != state:
            known[key] = state, build(self, odb, path, fs, algorithm, **options)
        return known[key][1]

    Output._build = build_once
    try:
        yield
    finally:
        Output._build = build


def is_code(path: Path) -> bool:
    """Returns whether a path is a Python module or package. All else is hashed as DVC does."""
    return path.suffix == ".py" or (path / "__init__.py").exists()


def state_of(path: Path) -> State | None:
    """Returns what tells a change of any file, or None where nothing or a link is there.

    Args:
        path: A module, or the folder of a package.
    """
    try:
        return _state(path)
    except FileNotFoundError:
        # there is none, or one went while it was looked at
        return None


def _state(path: Path) -> State | None:
    if path.is_symlink():
        return None
    if not path.is_dir():
        return [_file(str(path), path.stat())]
    files = []
    waiting = [str(path)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    return None
                if not entry.is_dir():
                    files.append(_file(entry.path, entry.stat()))
                elif entry.name != COMPILED:
                    waiting.append(entry.path)
    return sorted(files)


def _file(path: str, status: os.stat_result) -> tuple[str, int, int, int]:
    return path, status.st_mtime_ns, status.st_size, status.st_ino
