"""Lists every setting that a run of the shipped parameter files works with, after all inheritance.

What enters a ledger's `parameters` is a `model_dump()` of one of these blocks. A changed value
makes another release of it, and every client pays again.

    GOLDEN=write python -m pytest -q tests/pipelines/config/test_resolved.py
"""

import hashlib
import json

from golden_releases import GOLDEN

from pipelines.config import Params
from pipelines.config.dp import DP_BASELINES
from pipelines.config.generators import GENERATORS
from pipelines.config.training import BASELINES
from pipelines.files import standard

FILE = GOLDEN / "resolved.json"
SHARED = ("prepare", "partition", "privacy", "quality", "federation")
TRAINED = ("meta", "fine_tune", "new_clients", *BASELINES, *DP_BASELINES)
FACTS = ("source", "shape", "classes", "class_names", "licence", "classifier")
MORE_FACTS = ("augmentation", "images", "records", "public_fraction")


def resolved(params: Params) -> dict[str, dict]:
    """Returns {a block's name: its values}, for every block and every profile of `params`."""
    blocks = {"seed": {"seed": params.seed, "datasets": params.datasets}}
    for name in SHARED:
        blocks[name] = getattr(params, name).model_dump()
    for client, settings in params.clients.items():
        blocks[f"clients.{client}"] = settings.model_dump()
    for name in ("synthesis", "baselines", "dp_baselines"):
        block = getattr(params, name)
        for field, value in block:
            blocks[f"{name}.{field}"] = (
                value.model_dump() if hasattr(value, "model_dump") else value
            )
    for name in ("meta", "fine_tune", "new_clients"):
        blocks[name] = getattr(params, name).model_dump()
    for dataset in params.profiles:
        blocks |= _of_data_set(params, dataset)
    return standard(blocks)


def _of_data_set(params: Params, dataset: str) -> dict[str, dict]:
    profile = params.profiles[dataset].model_dump()
    blocks = {f"{dataset} profile": {name: profile[name] for name in (*FACTS, *MORE_FACTS)}}
    for name in GENERATORS:
        blocks[f"{dataset} {name}"] = params.generator(dataset, name).model_dump()
    for name in TRAINED:
        blocks[f"{dataset} {name}"] = params.training(dataset, name).model_dump()
    return blocks


def digests(params: Params) -> dict[str, str]:
    """Returns {a block's name: the start of its digest}."""
    found = {}
    for name, values in resolved(params).items():
        found[name] = hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]
    return found
