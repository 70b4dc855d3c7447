"""What the processes of one ensemble have in common, wherever they run: each one's share, and how it answers."""

import multiprocessing
import traceback

import numpy as np

from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.synthesis.datalens.ensemble import Ensemble, Recipe
from pipelines.synthesis.datalens.teacher_block import Ballot


def shares(
    recipe: Recipe, shard: Images, owner: np.ndarray, ballot: Ballot, count: int
) -> list[tuple]:
    """Ensemble's arguments for each of `count` processes: its blocks, and the records of these alone."""
    found = []
    for number in range(count):
        mine = recipe.blocks[number::count]
        rows = np.flatnonzero(np.isin(owner // recipe.size, mine))
        found.append((recipe, shard[rows], owner[rows], ballot, mine))
    return found


def answered(
    ensemble: Ensemble | None, question: tuple
) -> tuple[Ensemble | None, tuple[Exception | None, object]]:
    """(the teachers, (what went wrong, the answer)): the first question makes them, all others name a method."""
    try:
        if ensemble is None:
            return Ensemble(*question), (None, None)
        return ensemble, (None, getattr(ensemble, question[0])(*question[1:]))
    except UserError as error:
        return ensemble, (error, None)
    except Exception:
        return ensemble, (
            RuntimeError(f"in {multiprocessing.current_process().name}:\n{traceback.format_exc()}"),
            None,
        )


def unanswered() -> UserError:
    return UserError(
        "A process that trains teachers ended before its time, most often because memory ran out. Take fewer or "
        "smaller teachers (synthesis.datalens), then run again: it goes on from its last checkpoint."
    )
