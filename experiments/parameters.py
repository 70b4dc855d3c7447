"""Derives the parameters of a run: those of the files with the overrides of `dvc exp run -S`."""

import hashlib
import json

from pydantic import ValidationError

from experiments.plans import Run
from pipelines import methods
from pipelines.config import Params
from pipelines.config.places import PARAMS, PROFILES, SHARED, belongs_in
from pipelines.config.values import Block, sentences
from pipelines.errors import UserError
from pipelines.files import standard
from pipelines.synthesis import base

# These overrides are left out of a run's settings. They stand in its name, have no influence on its
# figures, or are part of the digest.
APART = (
    "seed",
    "datasets",
    "prepare.root",
    "prepare.public_fraction",
    "baselines.algorithms",
    "dp_baselines.algorithms",
)
# Every method's clients are scored after both: by default they take the mean with the model that
# they trained alone.
AT_HOME = ("fine_tune", "local")
# The figures that these settings of a method add stand in no table.
UNSEEN = {"shared_every"}
# The figures of a run depend on these fields of its data set's profile.
PROFILE = ("source", "shape", "classes", "classifier", "augmentation", "images")


def resolved(params: Params, overrides: dict[str, object]) -> Params:
    """Returns the parameters with dotted keys replaced, validated again.

    Raises:
        UserError: A key does not exist, or its value is not valid.
    """
    content = params.model_dump()
    for key, value in overrides.items():
        content = _replaced(content, key.split("."), value, key)
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        raise UserError(sentences(error)) from None


def arguments(overrides: dict[str, object]) -> list[str]:
    """Returns overrides as arguments of `dvc exp run`, in Hydra's grammar.

    Example:
        >>> arguments({"seed": 3, "datasets": ["mnist"], "partition.small": None})
        ['-S', 'seed=3', '-S', "datasets=['mnist']", '-S', 'partition.small=null']
    """
    words = []
    for key, value in overrides.items():
        words += ["-S", f"{_qualified(key)}={_text(value)}"]
    return words


def _qualified(key: str) -> str:
    """Returns a dotted key with the file that DVC changes, where that is not params.yaml.

    `++` also adds a key that is not there, for a block may have its value from a base.

    >>> _qualified("profiles.mnist.training.meta.rounds")
    'profiles/mnist.yaml:++training.meta.rounds'
    """
    path = tuple(key.split("."))
    file = belongs_in(path)
    if file == PARAMS:
        return key
    if path[0] in SHARED:
        return f"++{key}"
    if path[0] == PROFILES:
        return f"{file}:++{'.'.join(path[2:])}"
    return f"{file}:++{key}"


def settings(params: Params, run: Run) -> dict:
    """Returns what tells two runs of one name apart.

    Args:
        params: The parameters of params.yaml, without overrides.
        run: A planned run.

    Returns:
        The overrides but APART, and "parameters", a digest of all that the figures depend on.
    """
    overrides = {key: value for key, value in run.overrides.items() if key not in APART}
    blocks = json.dumps(standard(_blocks(resolved(params, run.overrides), run)), sort_keys=True)
    return standard({**overrides, "parameters": hashlib.sha256(blocks.encode()).hexdigest()[:16]})


def _blocks(params: Params, run: Run) -> dict:
    """Returns all parameters and versions that the figures of a run depend on."""
    profile = params.profiles[run.dataset].model_dump()
    blocks = {
        "clients": {},
        "privacy": params.privacy.model_dump(),
        "partition": params.partition.model_dump(),
        "test_fraction": params.prepare.test_fraction,
        "profile": {field: profile[field] for field in PROFILE},
        "training": _trainings(params, run, ["meta", *AT_HOME, *_baselines(run)]),
        "generators": {},
        "versions": {},
        "quality": params.quality.model_dump() if run.fidelity else None,
    }
    for name, client in params.clients.items():
        blocks["clients"][name] = client.model_dump()
    for name in params.synthesis.generators:
        blocks["generators"][name] = params.generator(run.dataset, name).model_dump()
        blocks["versions"][name] = base.load(name).VERSION
    return blocks | _noisy_blocks(params, run) | _newcomers_blocks(params, run)


def _baselines(run: Run) -> list[str]:
    """Returns the baselines that a run trains, sorted, each once."""
    names = set()
    for target in run.targets:
        if target.startswith("train_baseline"):
            names.add(target.partition(f"@{run.dataset}-")[2])
    return sorted(names)


def _noisy_blocks(params: Params, run: Run) -> dict:
    """Returns what only the figures of noisy training depend on."""
    algorithms = []
    for target in run.targets:
        if target.startswith("train_dp_baseline"):
            algorithms.append(target.rpartition("-")[2])
    if not algorithms:
        return {}
    # This import takes seconds for torch, which a refusal need not wait for.
    from pipelines.federation.algorithms import base

    versions = {}
    for name in algorithms:
        versions[name] = base.load(name).VERSION
    return {
        "public_fraction": params.public_fraction(run.dataset),
        "noisy": _trainings(params, run, algorithms),
        "noisy_versions": versions,
    }


def _newcomers_blocks(params: Params, run: Run) -> dict:
    """Returns what only the figures of clients that were held out depend on."""
    if not run.newcomers:
        return {}
    study = params.training(run.dataset, "new_clients")
    trainings = {}
    for name in study.algorithms:
        trainings[name] = _training(params, run, methods.block(name))
    return {"newcomers": _seen(study), "handed_out": trainings}


def _trainings(params: Params, run: Run, names: list[str]) -> dict[str, dict]:
    """Returns the training settings by name."""
    return {name: _training(params, run, name) for name in names}


def _training(params: Params, run: Run, name: str) -> dict:
    """Returns the settings of one training on the run's data set."""
    return _seen(params.training(run.dataset, name))


def _seen(block: Block) -> dict:
    """Returns the settings of a block that its figures depend on.

    A recipe that is not chosen shapes nothing, so that runs from before it existed are still known.
    """
    values = block.model_dump(exclude=UNSEEN)
    if values.get("recipe") == "plain":
        del values["recipe"]
        values.pop("replay", None)
    return values


def _replaced(node: dict, path: list[str], value: object, key: str) -> dict:
    """Returns a nested dict with the value at the end of a path replaced.

    Raises:
        UserError: The path does not exist; the sentence names the whole key.
    """
    if not isinstance(node, dict) or path[0] not in node:
        raise UserError(f"The parameter {key!r} of an experiment is not there. (params.yaml)")
    rest = path[1:]
    return {**node, path[0]: _replaced(node[path[0]], rest, value, key) if rest else value}


def _text(value: object) -> str:
    """Returns a value in Hydra's grammar."""
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, str):
        return f"'{value}'"
    return "null" if value is None else str(value).lower()
