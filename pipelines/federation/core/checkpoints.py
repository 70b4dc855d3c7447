"""What a killed run needs to go on with its rounds: now and then, on disk, all that one round hands to the next.

The folder is private: a client's memory is its own, and clients without privacy tell of their records in all they send.
Of noisy runs each file is post-processing of releases that are charged, and what a later draw replaces was never kept.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import torch

from pipelines.errors import UserError
from pipelines.federation.core.messages import ServerState
from pipelines.training.tensors import State

EVERY = 60.0  # seconds of rounds, at most, that a killed run does again
# what of a server's state moves; the rest is as it began
PLAIN = (dict, list, tuple, int, float, str, type(None))
ROOT = Path(__file__).parents[3]
SOURCES = (
    "models",
    "pipelines/config",
    "pipelines/federation",
    "pipelines/privacy",
    "pipelines/training",
    "pipelines/seeds.py",
)


@dataclass
class Progress:
    """Holds a run after some rounds.

    Attributes:
        state: the server's.
        models, curves, cost: as in `rounds.History`.
        reached: the most clients that answered a round.
    """

    state: ServerState
    models: list[State]
    curves: list[dict] = field(default_factory=list)
    cost: dict = field(
        default_factory=lambda: {"rounds": 0, "bytes_down": 0, "bytes_up": 0, "seconds": 0.0}
    )
    reached: int = 0


class Checkpoints:
    """Keeps one run's checkpoints on disk.

    Args:
        folder: where they are kept; None keeps nothing. Whoever names it removes it, once what came
            of the run is safe.
        name: tells the runs of one folder apart. A run of other settings or data needs another.
        stamp: of code, machine and whatever else the bytes follow from. Rounds under another stamp
            begin anew.
    """

    def __init__(self, folder: Path | None = None, name: str = "run", stamp: str = ""):
        self.folder = folder
        self.name = name
        self.stamp = stamp
        self.last = time.perf_counter()

    def once(self, make: Callable[[], tuple]) -> tuple:
        """Returns what a run begins from.

        It is on disk before anything uses it, so that a release within it is drawn once.
        """
        stored = self._read("first")
        if stored is None:
            stored = make()
            self._write("first", stored)
        return stored

    def restore(self, begun: Progress, engine) -> Progress:
        """Returns the last checkpoint, its memories at `engine`; `begun` where there is none.

        Raises:
            UserError: it cannot be read.
        """
        stored = self._read("rounds")
        if stored is None:
            return begun
        if stored.pop("stamp") != self.stamp:
            # before a noisy round is drawn again: no two draws of one lie on the disk
            self._path("rounds").unlink()
            return begun
        engine.memories = stored.pop("memories")
        return Progress(**{**stored, "state": replace(begun.state, **stored["state"])})

    def save(self, now: Progress, engine) -> None:
        """Replaces the checkpoint before, when that is old enough."""
        if self.folder is None or time.perf_counter() - self.last < EVERY:
            return
        state = {name: value for name, value in _values(now.state) if isinstance(value, PLAIN)}
        content = {**dict(_values(now)), "stamp": self.stamp, "state": state}
        self._write("rounds", {**content, "memories": engine.memories})
        self.last = time.perf_counter()

    def _write(self, what: str, content: object) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._path(what)
        beside = path.with_suffix(f"{path.suffix}.partial")
        try:
            torch.save(_packed(content), beside)
            os.replace(beside, path)
        except (OSError, RuntimeError) as error:  # torch's own for a full disk
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise UserError(
                f"Could not write the checkpoint {path}: {error}. The one before it is whole."
            ) from None

    def _read(self, what: str):
        if self.folder is None:
            return None
        path = self._path(what)
        # whole or not, nothing was made of it
        path.with_suffix(f"{path.suffix}.partial").unlink(missing_ok=True)
        if not path.exists():
            return None
        try:
            return _unpacked(torch.load(path, weights_only=True))
        except (OSError, RuntimeError, UnpicklingError, EOFError, KeyError, ValueError) as error:
            raise UserError(
                f"The checkpoint {path} cannot be read ({type(error).__name__}). Bring it back, or remove it: the run "
                "then begins anew."
            ) from None

    def _path(self, what: str) -> Path:
        return self.folder / f"{self.name}.{what}"


def _values(holder) -> list[tuple[str, object]]:
    """Returns the fields of a dataclass and their values, as they are."""
    return [(entry.name, getattr(holder, entry.name)) for entry in fields(holder)]


def stamp(*facts: bytes) -> str:
    """Returns a digest of what a run depends on: these facts, the code and this machine."""
    sources = (
        path
        for name in SOURCES
        for path in sorted([ROOT / name, *(ROOT / name).rglob("*.py")])
        if path.is_file()
    )
    machine = f"{torch.__version__} {torch.get_num_threads()} {torch.cuda.is_available()}".encode()
    parts = (
        hashlib.sha256(fact).digest()
        for fact in (machine, *facts, *(path.read_bytes() for path in sources))
    )
    return hashlib.sha256(b"".join(parts)).hexdigest()[:24]


def _packed(value):
    """Returns a value as torch's weights-only files hold it, without pickled objects.

    Arrays are marked, so that they are told apart from tensors. A named tuple becomes a plain one.
    """
    if isinstance(value, np.ndarray):
        return ("array", torch.from_numpy(np.ascontiguousarray(value)).reshape(value.shape))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _packed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_packed(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_packed(item) for item in value)
    return value


def _unpacked(value):
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "array":
        return value[1].numpy()
    if isinstance(value, dict):
        return {key: _unpacked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_unpacked(item) for item in value)
    return value
