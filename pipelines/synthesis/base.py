"""Defines the interface of a generator, and finds one by its name.

A generator is a module `pipelines/synthesis/NAME.py` with three functions and three constants.
VERSION and IDENTITY tell the ledger one release from another. KNOWN_FAILURES is for the card.
Its settings are a class of config/generators.py.

    plan(settings, budget, space) -> Plan
        Decides everything about the release before a private record is read: steps, noise and
        sensitivity.
    fit(shard, plan, noise, seed, where) -> state
        Makes the release: a dict of numpy arrays, and all that later stages may see of the shard.
        It may keep in `where.unfinished` what a killed run needs to go on.
    sample(state, count, seed) -> Images
        Draws `count` synthetic images, which is post-processing. Labels follow the state's
        `histogram`.

A generator of WITH_CLASSIFIER has a function more, because its release also holds a classifier:

    classifier_weights(state, settings) -> Weights
        Returns the network of this classifier and its weights, which is post-processing, too.
        `settings` are those in the details of the release's statement.

>>> import numpy as np
>>> from pipelines.config.generators import DpMoments
>>> from pipelines.datasets.labelled_images import Images
>>> from pipelines.privacy.noise import SeededForTests
>>> generator = load("dp_moments")
>>> settings = DpMoments(
...     cutoff=2, centre=0.5, clip=3.0, residual_clip=2.0, first_share=0.5, count_weight=0.5,
...     inflation=1.0, contrast=1.0, low_epsilon=None,
... )
>>> space = Space(height=4, width=4, channels=1, classes=2)
>>> plan = generator.plan(settings, Budget(epsilon=5.0, delta=1e-5), space)
>>> plan.lines
('dp_moments: 2 releases of 20 numbers, noise 1.26 and 1.26 at sensitivity 1',)
>>> shard = Images(np.zeros((6, 4, 4, 1), np.uint8), np.array([0, 1] * 3), np.arange(6))
>>> state = generator.fit(shard, plan, SeededForTests(0), seed=0)
>>> generator.sample(state, count=3, seed=0).images.shape
(3, 4, 4, 1)
"""

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from pipelines.config.data import Encoder
from pipelines.config.generators import GENERATORS
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.statement import Statement

HYPERPARAMETERS = "fixed in params.yaml before the run; how they were found is not accounted"


@dataclass(frozen=True)
class Space:
    """Holds what is public about the images.

    Attributes:
        height, width: The sides in pixels.
        channels: The number of channels.
        classes: The declared number of classes.
        encoder: The frozen network that the profile names, or None.
        records: About how many records the client trains on, as somebody declared it. None: nobody
            did. Only a plan may read it. It is no fact about a release but through what a plan
            makes of it, so the ledger does not enter it.
    """

    height: int
    width: int
    channels: int
    classes: int
    encoder: Encoder | None = None
    records: int | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Returns (height, width, channels)."""
        return self.height, self.width, self.channels


@dataclass(frozen=True)
class Plan:
    """Holds all that was decided about a release.

    Attributes:
        settings: The generator's settings.
        space: What is public about the images.
        statement: The privacy statement. Its `guarantee` and `noise` are filled in from the noise
            source when the release is made.
        weak: Why this plan can only make noise, judged from public numbers alone. Empty if the
            plan can work.
        lines: What a user should read before the release is made.
    """

    settings: Any
    space: Space
    statement: Statement
    weak: tuple[str, ...] = ()
    lines: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Where:
    """Says where a fit runs. Nothing here shapes what is released.

    Attributes:
        device: auto | cpu | cuda.
        unfinished: A private folder for what a killed run needs to go on. It is removed once the
            release is made. None stores nothing.
    """

    device: str = "cpu"
    unfinished: Path | None = None


HERE = Where()


class Weights(NamedTuple):
    """Holds a classifier that was released beside images.

    Attributes:
        network: The name of its network, as `models.classifiers.build` knows it.
        arrays: {name: array} of the network's weights, float32.
    """

    network: str
    arrays: dict[str, np.ndarray]


def stated(mechanism: str, budget: Budget, details: dict, **others: Any) -> Statement:
    """Returns the privacy statement of a plan that spends the whole budget.

    Args:
        mechanism: The mechanism in words.
        budget: The budget. An infinite one has no noise to name.
        details: The mechanism's parameters, which the card shows.
        **others: More fields of Statement.
    """
    if budget.private:
        guarantee = "formal"
        named = {"noise": "", **others}
    else:
        guarantee = "none"
        named = {**others, "noise": "none"}
    return Statement(
        mechanism=mechanism,
        epsilon=budget.epsilon,
        delta=budget.delta,
        mu=budget.mu,
        guarantee=guarantee,
        details={**details, "hyperparameters": HYPERPARAMETERS},
        **named,
    )


def load(name: str) -> ModuleType:
    """Returns the module of a generator.

    Raises:
        KeyError: There is no generator of this name.
    """
    if name not in GENERATORS:
        raise KeyError(name)
    return importlib.import_module(f"pipelines.synthesis.{name}")
