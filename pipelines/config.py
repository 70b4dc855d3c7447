"""Typed, validated parameters; the only reader of params.yaml.

    python -m pipelines.config       # checks params.yaml: one sentence per mistake, exit 1

Each class below is one block of params.yaml, where the meaning, unit and source of every knob stand.
"""

import difflib
import re
import sys
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Len
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipelines.errors import UserError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")  # a name becomes a folder and a part of a stage's name, joined by '-'


def _number(kind: type, interval: str):
    """An int or a float inside an interval written as mathematicians do, such as `(0, 1]`."""
    low, high = (float(edge) for edge in interval[1:-1].split(","))
    rule = f"{'an int' if kind is int else 'a float'} in {interval}"

    def check(value):
        is_number = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
        above = is_number and (value > low if interval[0] == "(" else value >= low)
        below = is_number and (value < high if interval[-1] == ")" else value <= high)
        if not (above and below):
            raise PydanticCustomError("rule", "must be {rule}", {"rule": rule})
        return kind(value)

    return Annotated[kind, BeforeValidator(check)]


def _name(value):
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise PydanticCustomError("rule", "must be {rule}", {"rule": "a name of letters, digits and underscores"})
    return value


Name = Annotated[str, BeforeValidator(_name)]
Count = _number(int, "[1, inf)")
Natural = _number(int, "[0, inf)")
Positive = _number(float, "(0, inf)")
NonNegative = _number(float, "[0, inf)")
OpenFraction = _number(float, "(0, 1)")
Fraction = _number(float, "[0, 1)")
Share = _number(float, "(0, 1]")
Epsilon = _number(float, "(0, inf]")


class Block(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Prepare(Block):
    test_fraction: OpenFraction


class SmallClient(Block):
    client: Name
    train_records: Count


class Partition(Block):
    scheme: Literal["dirichlet", "shards", "iid"]
    clients: list[Name]
    alpha: Positive
    shards_per_client: Count
    min_records: Count
    validation_fraction: OpenFraction
    test_fraction: OpenFraction
    small: SmallClient | None


class Privacy(Block):
    delta: OpenFraction
    noise: Literal["os_entropy", "seeded_for_tests"]


class Client(Block):
    epsilon: Epsilon
    delta: OpenFraction | None = None
    lifetime_epsilon: Epsilon | None = None


class Datalens(Block):
    teachers: Count
    steps: Count
    batch: Count
    top_k: Count
    clip: NonNegative
    stochastic: bool
    threshold: Share | None
    teacher_steps: Count
    teacher_warmup: Natural
    generator_steps: Count
    step_length: Positive
    learning_rate: Positive
    generator_learning_rate: Positive
    teacher_hidden: Count
    latent: Count
    weak_plan: Literal["refuse", "warn"]


class LowEpsilon(Block):
    below: Positive
    residual_clip: Positive
    first_share: OpenFraction
    inflation: Positive


class DpMoments(Block):
    centre: _number(float, "[0, 1]")
    cutoff: Count
    clip: Positive
    count_weight: Positive
    residual_clip: Positive
    first_share: OpenFraction
    inflation: Positive
    low_epsilon: LowEpsilon | None


class Gan(Block):
    steps: Count
    batch: Count
    learning_rate: Positive
    hidden: Count
    latent: Count


GENERATORS = {"datalens": Datalens, "dp_moments": DpMoments, "gan": Gan}


class Synthesis(Block):
    generators: list[Literal["datalens", "dp_moments", "gan"]]
    images: _number(int, "[4, inf)")
    datalens: Datalens
    dp_moments: DpMoments
    gan: Gan


class Quality(Block):
    extractor: Literal["small_gray", "inception"]
    inception_weights: str | None
    repeats: Count
    min_tstr_accuracy: Fraction
    min_recall: Fraction
    on_failure: Literal["warn", "fail"]


class Augmentation(Block):
    rotation: NonNegative
    scale: Fraction
    shear: NonNegative
    shift: NonNegative
    elastic: NonNegative


class Profile(Block):
    source: Literal["digits", "npz"]
    shape: Annotated[list[Count], Len(3, 3)]
    classes: _number(int, "[2, inf)")
    licence: str
    classifier: Literal["mlp", "cnn"]
    augmentation: Augmentation | None
    datalens: dict
    dp_moments: dict
    gan: dict


class Meta(Block):
    rounds: Count
    order: Literal["first", "second"]
    inner_learning_rate: Positive
    inner_steps: Count
    outer_learning_rate: Positive
    outer_optimiser: Literal["adam", "sgd"]
    query_fraction: OpenFraction
    batch: Count
    weights: Literal["uniform", "size_of_set", "epsilon"]
    rho: Positive
    ema: bool
    zeta: Share
    cosine: bool
    cycles: Count


class FineTune(Block):
    epochs: Count
    batch: Count
    learning_rate: Positive
    patience: Count
    every: Count


class Local(Block):
    epochs: Count
    patience: Count


class Fedavg(Block):
    rounds: Count
    local_epochs: Count
    batch: Count
    learning_rate: Positive


class Pooled(Block):
    epochs: Count
    batch: Count
    learning_rate: Positive


class Baselines(Block):
    algorithms: list[Literal["local", "random_init", "fedavg", "pooled"]]
    local: Local
    fedavg: Fedavg
    pooled: Pooled


class Dpsgd(Block):
    rounds: Count
    local_steps: Count
    sampling_rate: OpenFraction
    expected_lot: Positive
    clipping_norm: Positive
    learning_rate: Positive


class DpBaselines(Block):
    algorithms: list[Literal["dpsgd"]]
    dpsgd: Dpsgd


class Params(Block):
    seed: Natural
    device: Literal["auto", "cpu", "cuda"]
    datasets: list[Name]
    clients: dict[Name, Client]
    prepare: Prepare
    partition: Partition
    privacy: Privacy
    synthesis: Synthesis
    quality: Quality
    meta: Meta
    fine_tune: FineTune
    baselines: Baselines
    dp_baselines: DpBaselines
    profiles: dict[Name, Profile]

    @model_validator(mode="after")
    def _blocks_agree(self):
        for dataset in self.datasets:
            if dataset not in self.profiles:
                raise _mistake("datasets", dataset, "a name that has a block under 'profiles'")
            profile = self.profiles[dataset]
            if profile.classifier == "cnn" and min(profile.shape[:2]) < 16:
                raise _mistake(f"profiles.{dataset}.classifier", "cnn", "'mlp' for images below 16x16")
            for name in GENERATORS:
                self.generator(dataset, name)
        for client in self.clients:
            if client not in self.partition.clients:
                raise _mistake("clients", client, "among the clients of 'partition.clients', who get a shard")
        if not self.clients:
            raise _mistake("clients", "{}", "a mapping with at least one client")
        lists = {
            "datasets": self.datasets,
            "partition.clients": self.partition.clients,
            "synthesis.generators": self.synthesis.generators,
            "baselines.algorithms": self.baselines.algorithms,
            "dp_baselines.algorithms": self.dp_baselines.algorithms,
        }
        for where, names in lists.items():
            if not names or len(set(names)) < len(names):
                raise _mistake(where, names, "a list of at least one name, none twice")
        small, clients = self.partition.small, self.partition.clients
        if small and (small.client not in clients or len(clients) < 2):
            raise _mistake("partition.small.client", small.client, "one of two or more 'partition.clients'")
        if self.partition.validation_fraction + self.partition.test_fraction >= 1:
            raise _mistake("partition.test_fraction", self.partition.test_fraction, "below 1 - validation_fraction")
        return self

    def generator(self, dataset: str, name: str) -> Datalens | DpMoments | Gan:
        """The settings of generator `name`: its block under `synthesis`, overridden by the data set's profile."""
        overrides = getattr(self.profiles[dataset], name)
        merged = {**getattr(self.synthesis, name).model_dump(), **overrides}
        try:
            return GENERATORS[name].model_validate(merged)
        except ValidationError as error:
            raise UserError(_sentences(error, owner=f"synthesis.{name} (profile {dataset})")) from None

    def budget(self, client: str) -> tuple[float, float]:
        """(epsilon, delta) of one client."""
        own = self.clients[client]
        return own.epsilon, own.delta or self.privacy.delta


def load(path: Path = Path("params.yaml")) -> Params:
    """Reads and checks the parameters.

    Raises:
        UserError: with one sentence for each mistake in the file.
    """
    try:
        content = YAML(typ="safe").load(path.read_text())
    except OSError as error:
        raise UserError(f"Could not read {path}: {error.strerror}. Run from the project's root.") from None
    except (YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        raise UserError(f"{path} is not valid YAML{f' (line {mark.line + 1})' if mark else ''}.") from None
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        raise UserError(_sentences(error)) from None


def _mistake(where: str, got: object, rule: str) -> UserError:
    owner, _, name = where.rpartition(".")
    return UserError(_sentence(name, owner, rule, got))


def _sentence(name: str, owner: str, rule: str, got: object) -> str:
    return f"The '{name}' parameter{f' of {owner}' if owner else ''} must be {rule}. Got {got!r} instead. (params.yaml)"


def _sentences(error: ValidationError, owner: str = "") -> str:
    return "\n".join(_explain(item, owner) for item in error.errors())


def _explain(item: dict, prefix: str) -> str:
    """One pydantic error as a sentence: name, owner, rule, what was found."""
    location = [str(part) for part in item["loc"] if part != "[key]"]
    name = location[-1] if location else "params.yaml"
    owner = ".".join(filter(None, [prefix, *location[:-1]]))
    of = f" of {owner}" if owner else ""
    if item["type"] == "missing":
        return f"The '{name}' parameter{of} is missing. (params.yaml)"
    if item["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, _known_names(), n=1)
        return f"The '{name}' parameter{of} is unknown{f', did you mean {near[0]!r}?' if near else '.'} (params.yaml)"
    rule = {
        "literal_error": f"one of {item.get('ctx', {}).get('expected')}",
        "model_type": "a mapping",
        "invalid_key": "a name, not a number",
        "too_short": "a list of three",  # the one list with a length is a profile's shape
        "too_long": "a list of three",
    }
    plain = item["msg"].removeprefix("must be ").removeprefix("Input should be ")
    return _sentence(name, owner, rule.get(item["type"], plain), item["input"])


def _known_names() -> list[str]:
    return sorted({name for block in _subclasses(Block) for name in block.model_fields})


def _subclasses(block: type) -> list[type]:
    return [block, *(deeper for child in block.__subclasses__() for deeper in _subclasses(child))]


if __name__ == "__main__":
    try:
        load()
    except UserError as error:
        sys.exit(f"Error: {error}")
