"""The interface of a generator, and how one is found.

A generator is a module `pipelines/synthesis/NAME.py` with three functions and three constants: VERSION and IDENTITY
tell the ledger one release from another, KNOWN_FAILURES is for the card. Its settings are a class of
config/generators.py.

    plan(settings, budget, space) -> Plan
        Everything about the release that is decided before a private record is read: steps, noise, sensitivity.
    fit(shard, plan, noise, seed, where) -> state
        The release: a dict of numpy arrays, and all that later stages may see of the shard. It may keep in
        `where.unfinished` what a killed run needs to go on.
    sample(state, count, seed) -> Images
        Post-processing: `count` synthetic images; labels follow the state's `histogram`.
"""

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from pipelines.config.generators import GENERATORS
from pipelines.config.values import mistake
from pipelines.privacy.discrete_gaussian import FINEST, Budget, lattice_scale
from pipelines.privacy.statement import Statement

HYPERPARAMETERS = "fixed in params.yaml before the run; how they were found is not accounted"


@dataclass(frozen=True)
class Space:
    """What is public about the images: side and channels, and the declared number of classes."""

    height: int
    width: int
    channels: int
    classes: int

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.height, self.width, self.channels


@dataclass(frozen=True)
class Plan:
    """A release, decided.

    Attributes:
        statement: its privacy statement; `guarantee` and `noise` are filled from the noise source when it runs.
        weak: why this plan can only make noise, judged from public numbers alone; empty when it can work.
        lines: what a user should read before it runs.
    """

    settings: Any
    space: Space
    statement: Statement
    weak: tuple[str, ...] = ()
    lines: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Where:
    """Where a fit runs. Nothing here shapes what is released.

    Attributes:
        device: auto | cpu | cuda.
        unfinished: a private folder for what a killed run needs to go on, removed once the release is made; None
            keeps nothing.
    """

    device: str = "cpu"
    unfinished: Path | None = None


HERE = Where()


def lattice(budget: Budget, *, sigma: float, draws: int) -> int:
    """`lattice_scale`, from public numbers alone, before anything is entered as spent.

    Raises:
        UserError: delta is so small that sums on that lattice would outgrow 64 bits.
    """
    scale = lattice_scale(budget, sigma=sigma, draws=draws)
    if scale > FINEST:
        rule = f"larger: {draws} released numbers would need a lattice finer than 64 bits have room for"
        raise mistake("privacy.delta", budget.delta, rule)
    return scale


def stated(mechanism: str, budget: Budget, details: dict, **others: str) -> Statement:
    """The statement of a plan that spends `budget` whole; `others` are fields of Statement. An infinite budget has no
    noise to name."""
    named = {"noise": "", **others} if budget.private else {**others, "noise": "none"}
    return Statement(
        mechanism=mechanism,
        epsilon=budget.epsilon,
        delta=budget.delta,
        mu=budget.mu,
        guarantee="formal" if budget.private else "none",
        details={**details, "hyperparameters": HYPERPARAMETERS},
        **named,
    )


def load(name: str) -> ModuleType:
    if name not in GENERATORS:
        raise KeyError(name)
    return importlib.import_module(f"pipelines.synthesis.{name}")
