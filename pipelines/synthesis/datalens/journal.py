"""Writes down what a killed run needs: every noisy vote it released, and states of all networks.

A step's votes are released once. They are written here, and on disk, before anything uses them. A
run that starts again trains its teachers through the same steps but takes the votes from here:
drawn anew, one step would be released twice and charged once. A record that was cut off while
being written was used by nobody.

The folder is private: checkpoints hold teachers, which are the records' own, and generators in
mid-course.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from pipelines.errors import UserError

# steps between checkpoints
EVERY = 20
# bytes
DIGEST = 16


class Keeper(Protocol):
    """Anything that has a state which a folder can hold."""

    def save(self, folder: Path) -> None:
        """Writes the state into the folder."""

    def load(self, folder: Path) -> None:
        """Puts back the state that `save` wrote."""


class Journal:
    """Holds the released votes and the checkpoints of one run.

    Args:
        folder: Where they are stored. None stores nothing.
        shape: The shape of one step's votes.

    Attributes:
        released: float64 `shape` per step done so far, as released. The values are multiples of a
            power of two, so no digit is lost.
    """

    def __init__(self, folder: Path | None, shape: tuple[int, ...]):
        self.folder = folder
        self.released = []
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.released = _read(folder / "votes", shape)

    def once(self, step: int, release: Callable[[], np.ndarray]) -> np.ndarray:
        """Returns the votes of a step, which are released at most once.

        Args:
            step: The number of the step, from 0.
            release: Makes the votes. It is called if no run released them before, and they are
                written before they are returned.
        """
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
        """Writes, every so many steps, the state after `steps` of them in place of the last one."""
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
        """Puts the last checkpoint back and returns how many steps it is from the start.

        Raises:
            UserError: The checkpoint cannot be read.
        """
        checkpoints = [] if self.folder is None else self._checkpoints()
        if not checkpoints:
            return 0
        steps, folder = max(checkpoints)
        try:
            for keeper in keepers:
                keeper.load(folder)
        except (UserError, KeyError, ValueError, RuntimeError) as error:
            raise UserError(
                f"The checkpoint {folder} cannot be read ({error}). Remove it: the run goes on "
                "from its stored votes."
            ) from None
        return steps

    def _checkpoints(self) -> list[tuple[int, Path]]:
        checkpoints = []
        for path in self.folder.glob("after-*"):
            checkpoints.append((int(path.name.removeprefix("after-")), path))
        return checkpoints


def _record(step: int, votes: np.ndarray) -> bytes:
    content = votes.astype("<f8").tobytes()
    key = step.to_bytes(8, "big")
    return content + hashlib.blake2b(content, key=key, digest_size=DIGEST).digest()


def _read(path: Path, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Returns all whole records, and cuts off what a dying run left of one after them.

    Raises:
        UserError: A record before the last is damaged. Its votes were used, and must not be drawn
            again.
    """
    content = path.read_bytes() if path.exists() else b""
    length = 8 * int(np.prod(shape)) + DIGEST
    released = []
    for step in range(len(content) // length):
        record = content[step * length : (step + 1) * length]
        votes = np.frombuffer(record[:-DIGEST], "<f8").reshape(shape).astype(np.float64)
        if _record(step, votes) != record:
            break
        released.append(votes)
    sound = len(released) * length
    if len(content) - sound > length:
        raise UserError(
            f"{path} is damaged at step {len(released)}. Bring it back; or remove its folder and "
            "change the seed: that is a new release, and is charged."
        )
    if len(content) > sound:
        os.truncate(path, sound)
    return released
