"""What a killed run needs to go on: every noisy vote it released, and now and then the state of all networks.

A step's votes are released once. They are written here, and on disk, before anything uses them; a run that starts
again trains its teachers through the same steps but takes the votes from here: drawn anew, one step would be released
twice and charged once. A record that was cut off while being written was used by nobody.

The folder is private: checkpoints hold teachers, which are the records' own, and generators in mid-course.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from pipelines.errors import UserError

EVERY = 20  # steps between checkpoints
DIGEST = 16  # bytes


class Keeper(Protocol):
    """Anything with a state to be kept in a folder."""

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> None: ...


class Journal:
    """The released votes and the checkpoints of one run.

    Args:
        folder: where they are kept; None keeps nothing.
        shape: of one step's votes.

    Attributes:
        released: float64 `shape` per step done so far, as released (multiples of a power of two: no digit is lost).
    """

    def __init__(self, folder: Path | None, shape: tuple[int, ...]):
        self.folder, self.released = folder, []
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.released = _read(folder / "votes", shape)

    def once(self, step: int, release: Callable[[], np.ndarray]) -> np.ndarray:
        """The votes of `step`: those released before the run was killed, otherwise `release()`, written first."""
        if step < len(self.released):
            return self.released[step]
        votes = release()
        if self.folder is not None:
            with (self.folder / "votes").open("ab") as file:
                file.write(_record(step, votes))
                file.flush()
                os.fsync(file.fileno())
        self.released.append(votes)
        return votes

    def checkpoint(self, steps: int, *keepers: Keeper) -> None:
        """Every so many steps: the state after `steps` of them, in place of the one before."""
        if self.folder is None or steps % EVERY:
            return
        partial = self.folder / "partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for keeper in keepers:
            keeper.save(partial)
        os.replace(partial, self.folder / f"after-{steps}")
        for steps_before, older in self._checkpoints():
            if steps_before < steps:
                shutil.rmtree(older)

    def resumed(self, *keepers: Keeper) -> int:
        """Puts the last checkpoint back; how many steps it is from the start.

        Raises:
            UserError: the checkpoint cannot be read.
        """
        found = [] if self.folder is None else self._checkpoints()
        if not found:
            return 0
        steps, folder = max(found)
        try:
            for keeper in keepers:
                keeper.load(folder)
        except (UserError, KeyError, ValueError, RuntimeError) as error:
            raise UserError(
                f"The checkpoint {folder} cannot be read ({error}). Remove it: the run goes on from its stored votes."
            ) from None
        return steps

    def _checkpoints(self) -> list[tuple[int, Path]]:
        return [
            (int(path.name.removeprefix("after-")), path) for path in self.folder.glob("after-*")
        ]


def _record(step: int, votes: np.ndarray) -> bytes:
    content = votes.astype("<f8").tobytes()
    return (
        content + hashlib.blake2b(content, key=step.to_bytes(8, "big"), digest_size=DIGEST).digest()
    )


def _read(path: Path, shape: tuple[int, ...]) -> list[np.ndarray]:
    """All whole records; what a dying run left of one after them is cut off.

    Raises:
        UserError: a record before the last is damaged: its votes were used, and must not be drawn again.
    """
    content = path.read_bytes() if path.exists() else b""
    length = 8 * int(np.prod(shape)) + DIGEST
    found = []
    for step in range(len(content) // length):
        record = content[step * length : (step + 1) * length]
        votes = np.frombuffer(record[:-DIGEST], "<f8").reshape(shape).astype(np.float64)
        if _record(step, votes) != record:
            break
        found.append(votes)
    if len(content) - len(found) * length > length:
        raise UserError(
            f"{path} is damaged at step {len(found)}. Bring it back; or remove its folder and change the seed: that is "
            "a new release, and is charged."
        )
    if len(content) > len(found) * length:
        os.truncate(path, len(found) * length)
    return found
