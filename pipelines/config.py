"""Typed, validated parameters; the only reader of params.yaml.

    python -m pipelines.config       # checks params.yaml: one sentence per mistake, exit 1

Each class below is one block of params.yaml, where the meaning, unit and source of every knob stand.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Len
from pydantic import ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipelines.errors import UserError
from pipelines.paths import RAW
from pipelines.rules import (
    Block,
    Count,
    Epsilon,
    Fraction,
    Name,
    Natural,
    NonNegative,
    OpenFraction,
    Positive,
    Share,
    mistake,
    number,
    sentences,
)


class Prepare(Block):
    root: str
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
    teacher_network: Literal["mlp", "compact", "paper"]
    generator_network: Literal["mlp", "paper", "conv"]
    steps: Count
    batch: Count
    top_k: Count
    clip: NonNegative
    stochastic: bool
    threshold: Share | None
    vote_cutoff: Count | None
    labels: Literal["in_turn", "uniform"]
    wrong_labels: bool
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
    centre: number(float, "[0, 1]")
    cutoff: Count
    clip: Positive
    count_weight: Positive
    residual_clip: Positive
    first_share: OpenFraction
    inflation: Positive
    contrast: Positive
    low_epsilon: LowEpsilon | None


class Augmentation(Block):
    rotation: NonNegative
    scale: Fraction
    shear: NonNegative
    shift: NonNegative
    elastic: NonNegative
    noise: NonNegative


class WarmStart(Block):
    images: Count
    epochs: Count
    batch: Count
    learning_rate: Positive


class DpTeacher(DpMoments):
    teacher_share: OpenFraction
    steps: Count
    clipping_norm: Positive
    learning_rate: Positive
    momentum: Fraction
    averaging: Fraction
    classifier: Literal["mlp", "cnn"]
    augmentation: Augmentation | None
    warm_start: WarmStart


class DpMerf(Block):
    features: Count
    length_scale: Positive
    count_weight: Positive
    network: Literal["mlp", "cnn"]
    steps: Count
    batch: number(int, "[2, inf)")
    learning_rate: Positive


class Gan(Block):
    steps: Count
    batch: Count
    learning_rate: Positive
    hidden: Count
    latent: Count


GENERATORS = {
    "datalens": Datalens,
    "dp_merf": DpMerf,
    "dp_moments": DpMoments,
    "dp_teacher": DpTeacher,
    "gan": Gan,
}


class Synthesis(Block):
    generators: list[Literal["datalens", "dp_merf", "dp_moments", "dp_teacher", "gan"]]
    images: number(int, "[4, inf)")
    datalens: Datalens
    dp_merf: DpMerf
    dp_moments: DpMoments
    dp_teacher: DpTeacher
    gan: Gan


class Quality(Block):
    extractor: Literal["small_gray", "inception"]
    inception_weights: str | None
    repeats: Count
    min_tstr_accuracy: Fraction
    min_recall: Fraction
    on_failure: Literal["warn", "fail"]


class Profile(Block):
    source: Literal["digits", "mnist", "fashion_mnist", "cifar10", "cifar100", "folder", "npz"]
    shape: Annotated[list[Count], Len(3, 3)]
    classes: number(int, "[2, inf)")
    licence: str
    classifier: Literal["mlp", "cnn"]
    augmentation: Augmentation | None
    datalens: dict
    dp_moments: dict
    dp_merf: dict
    dp_teacher: dict
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
                raise mistake("datasets", dataset, "a name that has a block under 'profiles'")
        for dataset, profile in self.profiles.items():
            if profile.classifier == "cnn" and min(profile.shape[:2]) < 16:
                raise mistake(f"profiles.{dataset}.classifier", "cnn", "'mlp' for images below 16x16")
            if profile.source == "folder" and profile.shape[2] not in (1, 3):
                raise mistake(f"profiles.{dataset}.shape", profile.shape, "[height, width, 1 or 3] for an image folder")
            for name in GENERATORS:
                settings = self.generator(dataset, name)
                network = getattr(settings, "classifier", getattr(settings, "network", None))
                if network == "cnn" and min(profile.shape[:2]) < 16:
                    where = "classifier" if hasattr(settings, "classifier") else "network"
                    raise mistake(f"profiles.{dataset}.{name}.{where}", "cnn", "'mlp' for images below 16x16")
        inside = Path(os.path.relpath(self.prepare.root or "."))
        if ".." not in inside.parts and not inside.is_relative_to(RAW):
            raise mistake("prepare.root", self.prepare.root, f"'{RAW}', which Git ignores, or outside the project")
        for client in self.clients:
            if client not in self.partition.clients:
                raise mistake("clients", client, "among the clients of 'partition.clients', who get a shard")
        if not self.clients:
            raise mistake("clients", "{}", "a mapping with at least one client")
        lists = {
            "datasets": self.datasets,
            "partition.clients": self.partition.clients,
            "synthesis.generators": self.synthesis.generators,
            "baselines.algorithms": self.baselines.algorithms,
            "dp_baselines.algorithms": self.dp_baselines.algorithms,
        }
        for where, names in lists.items():
            if not names or len(set(names)) < len(names):
                raise mistake(where, names, "a list of at least one name, none twice")
        small, clients = self.partition.small, self.partition.clients
        if small and (small.client not in clients or len(clients) < 2):
            raise mistake("partition.small.client", small.client, "one of two or more 'partition.clients'")
        if self.partition.validation_fraction + self.partition.test_fraction >= 1:
            raise mistake("partition.test_fraction", self.partition.test_fraction, "below 1 - validation_fraction")
        return self

    def generator(self, dataset: str, name: str) -> Block:
        """The settings of generator `name`: its block under `synthesis`, overridden by the data set's profile."""
        overrides = getattr(self.profiles[dataset], name)
        merged = {**getattr(self.synthesis, name).model_dump(), **overrides}
        try:
            return GENERATORS[name].model_validate(merged)
        except ValidationError as error:
            raise UserError(sentences(error, owner=f"synthesis.{name} (profile {dataset})")) from None

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
        raise UserError(sentences(error)) from None


if __name__ == "__main__":
    try:
        load()
    except UserError as error:
        sys.exit(f"Error: {error}")
