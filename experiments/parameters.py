"""The parameters of a run: those of params.yaml with its overrides, as `dvc exp run -S` will put them there."""

import hashlib
import json

from pydantic import ValidationError

from experiments.plans import Run
from pipelines import methods
from pipelines.config import Params
from pipelines.config.values import sentences
from pipelines.errors import UserError
from pipelines.files import standard
from pipelines.synthesis import base

APART = (  # in a run's name, of no weight for its figures, or below
    "seed",
    "datasets",
    "prepare.root",
    "prepare.public_fraction",
    "dp_baselines.algorithms",
    "meta.rounds",
    "baselines.fedmeta.rounds",
    "baselines.fedavg.rounds",
)
UNSEEN = {"shared_every"}  # of a method's settings: what it adds stands in no table


def resolved(params: Params, overrides: dict[str, object]) -> Params:
    """`params` with dotted keys replaced, checked anew.

    Raises:
        UserError: a key that is not there, or a value that may not be.
    """
    content = params.model_dump()
    for key, value in overrides.items():
        content = _replaced(content, key.split("."), value, key)
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        raise UserError(sentences(error)) from None


def arguments(overrides: dict[str, object]) -> list[str]:
    """For the command line of `dvc exp run`, in Hydra's grammar."""
    return [part for key, value in overrides.items() for part in ("-S", f"{key}={_text(value)}")]


def settings(params: Params, run: Run) -> dict:
    """What tells two runs of one name apart: the overrides, and a digest of all that the run's figures depend on."""
    overrides = {key: value for key, value in run.overrides.items() if key not in APART}
    blocks = json.dumps(standard(_blocks(resolved(params, run.overrides), run)), sort_keys=True)
    return standard({**overrides, "parameters": hashlib.sha256(blocks.encode()).hexdigest()[:16]})


def _blocks(params: Params, run: Run) -> dict:
    profile = params.profiles[run.dataset].model_dump()
    trained = {
        target.partition(f"@{run.dataset}-")[2]
        for target in run.targets
        if target.startswith("train_baseline")
    }
    generators = params.synthesis.generators
    noisy = [
        target.rpartition("-")[2]
        for target in run.targets
        if target.startswith("train_dp_baseline")
    ]
    return (
        _noisy(params, run, noisy)
        | _newcomers(params, run)
        | {
            "clients": {name: client.model_dump() for name, client in params.clients.items()},
            "privacy": params.privacy.model_dump(),
            "partition": params.partition.model_dump(),
            "test_fraction": params.prepare.test_fraction,
            "profile": {
                key: profile[key]
                for key in ("source", "shape", "classes", "classifier", "augmentation", "images")
            },
            "training": {
                name: _training(params, run, name)
                for name in ("meta", "fine_tune", *sorted(trained))
            },
            "generators": {
                name: params.generator(run.dataset, name).model_dump() for name in generators
            },
            "versions": {name: base.load(name).VERSION for name in generators},
            "quality": params.quality.model_dump() if run.fidelity else None,
        }
    )


def _noisy(params: Params, run: Run, algorithms: list[str]) -> dict:
    """What only runs with noisy training depend on."""
    if not algorithms:
        return {}
    from pipelines.federation import noisy_run  # torch: seconds, that a refusal need not take

    trained = {name: _training(params, run, name) for name in algorithms}
    versions = {
        name: noisy_run.family(params.training(run.dataset, name)).VERSION for name in algorithms
    }
    return {
        "public_fraction": params.public_fraction(run.dataset),
        "noisy": trained,
        "noisy_versions": versions,
    }


def _newcomers(params: Params, run: Run) -> dict:
    """What only runs with clients held out depend on."""
    if not run.newcomers:
        return {}
    settings = params.training(run.dataset, "new_clients")
    handed = {name: _training(params, run, methods.block(name)) for name in settings.algorithms}
    return {"newcomers": settings.model_dump(), "handed_out": handed}


def _training(params: Params, run: Run, name: str) -> dict:
    return params.training(run.dataset, name).model_dump(exclude=UNSEEN)


def _replaced(node: dict, path: list[str], value: object, key: str) -> dict:
    if not isinstance(node, dict) or path[0] not in node:
        raise UserError(f"The parameter {key!r} of an experiment is not there. (params.yaml)")
    return {**node, path[0]: _replaced(node[path[0]], path[1:], value, key) if path[1:] else value}


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, str):
        return f"'{value}'"
    return "null" if value is None else str(value).lower()
