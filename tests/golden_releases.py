"""Makes releases of every mechanism with frozen settings, as the code of today enters them in a
ledger.

`golden/settings.json` holds the settings. `golden/ledgers/NAME.jsonl` is the ledger of a client
that made the release when the file was written. A setting that was added later gets its neutral
value here.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

from models.scattering_basis import Basis
from pipelines.config.data import Augmentation
from pipelines.config.dp import DpBaselines
from pipelines.config.generators import GENERATORS, DpMoments
from pipelines.federation.algorithms import base as algorithms
from pipelines.federation.noisy_release import entry
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Release
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, dp_moments, warm_start
from pipelines.synthesis import release as releasing
from pipelines.training import public_basis

GOLDEN = Path(__file__).parent / "golden"
EPSILON = 2.0
DELTA = 1e-5
SEED = 7
SPACE = base.Space(height=8, width=8, channels=1, classes=10)
BASIS = public_basis.StoredBasis(
    Basis(np.zeros(1), np.zeros((214, 1)), np.zeros(214)), "a basis of no images"
)
WARPS = {"rotation": 0.15, "scale": 0.1, "shear": 0.1, "shift": 0.5, "elastic": 0.0, "noise": 0.0}


def frozen_settings() -> dict[str, dict]:
    """Returns {mechanism: its settings when the ledgers were written}."""
    return json.loads((GOLDEN / "settings.json").read_text())


def of_today(name: str, settings: dict) -> Release:
    """Returns the release of a mechanism with these settings, made by the code of today."""
    if name in GENERATORS:
        return of_generator(name, settings)
    return of_noisy_training(name, settings)


def of_generator(name: str, settings: dict) -> Release:
    module = base.load(name)
    # the public basis may differ by machine, and its name is a fact
    with mock.patch.object(public_basis, "stored_basis", lambda shape: BASIS):
        plan = module.plan(GENERATORS[name].model_validate(settings), Budget(EPSILON, DELTA), SPACE)
    statement = releasing.described(plan, OsEntropy())
    return releasing.entry(
        name, module.VERSION, module.IDENTITY, plan, statement, data="the records", seed=SEED
    )


def of_noisy_training(name: str, settings: dict) -> Release:
    settings = DpBaselines.model_fields[name].annotation.model_validate(settings)
    profile = SimpleNamespace(
        shape=[8, 8, 1],
        classes=10,
        classifier="mlp",
        augmentation=Augmentation.model_validate(WARPS),
    )
    algorithm = algorithms.load(name)
    start = None
    before = ()
    delta = DELTA
    if settings.warm_start:
        moments = DpMoments.model_validate(frozen_settings()["dp_moments"])
        plan = warm_start.plan(moments, EPSILON, DELTA, settings.warm_start.share, SPACE)
        start = warm_start.parameters(plan, profile.augmentation)
        before = warm_start.steps(plan)
        delta = warm_start.continuous(DELTA)
    account = algorithm.new_account(EPSILON, delta, settings, before)
    return entry(
        name,
        algorithm.VERSION,
        algorithm.IDENTITY | dp_moments.IDENTITY.below("start"),
        account.statement(OsEntropy(), DELTA),
        account.cost,
        data=["the records of a", "the records of b"],
        client="a",
        profile=profile,
        seed=SEED,
        start=start,
    )
