"""Declares the settings of generators: one block under `synthesis` each, overridden by a profile's.

A new generator is a class here and its line in `Synthesis`.
"""

import operator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from pipelines.config.data import Augmentation
from pipelines.config.heads import Head
from pipelines.config.values import (
    Block,
    Count,
    Factor,
    Fraction,
    Natural,
    Norm,
    Part,
    Positive,
    Rate,
    Records,
    Share,
    Width,
    number,
)

TeacherNetwork = Literal["mlp", "compact", "paper"]
GeneratorNetwork = Literal["mlp", "paper", "conv"]


# The `teachers` that stand for as many as follow from public numbers.
AUTO = "auto"
# The `colluding` that stands for half of the clients, rounded down.
HALF = "half"


def _count_or(word: str) -> BeforeValidator:
    """Returns the check of a setting that is a number of 1 or more, or a word that stands for one."""

    def checked(value: object) -> object:
        fine = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1e6
        if value != word and not fine:
            rule = f"an int in [1, 1e6], or {word!r}"
            raise PydanticCustomError("rule", "must be {rule}", {"rule": rule})
        return value

    return BeforeValidator(checked)


class TeachersRule(Block):
    """Says how many teachers `auto` takes, from the budget and a public number of records.

    Attributes:
        noise: The sigma / N to reach, with as few teachers as reach it.
        least_records: The fewest records of a teacher, on average.
        most_records: The most records of a teacher, on average.
        most_teachers: The most teachers, which bounds memory and time.
    """

    noise: Factor
    least_records: Records
    most_records: Records
    most_teachers: Count

    @model_validator(mode="after")
    def _least_before_most(self):
        if self.least_records > self.most_records:
            rule = "a mapping whose 'least_records' is at most its 'most_records'"
            raise PydanticCustomError("rule", "must be {rule}", {"rule": rule})
        return self


class HighNoise(Block):
    """Holds what replaces values of `Datalens` where sigma/N is above `above`.

    `steps` of None replaces none, and is not written.
    """

    above: Positive
    latent: Width
    steps: Count | None = Field(default=None, exclude_if=operator.not_)


class Datalens(Block):
    """Holds the settings of DataLens: teachers vote on compressed gradients.

    `cosine` and `high_noise` are left out where they change nothing, for ledgers and stored figures
    know settings by what is written.

    Attributes:
        teachers: N, or `auto`: as many as `teachers_rule` says.
        teachers_rule: Read where `teachers` is `auto`.
        cosine: The generator's learning rate falls to 0 along a cosine.
    """

    teachers: Annotated[int | Literal["auto"], _count_or(AUTO)]
    teachers_rule: TeachersRule | None = None
    teacher_network: TeacherNetwork
    generator_network: GeneratorNetwork
    steps: Count
    batch: Count
    top_k: Count
    clip: number(float, "[0, 1e9]")
    stochastic: bool
    threshold: Share | None = None
    centre_votes: bool = False
    vote_cutoff: Count | None = None
    labels: Literal["in_turn", "uniform"]
    wrong_labels: bool = False
    teacher_steps: Count
    teacher_warmup: Natural = 0
    generator_steps: Count
    step_length: Factor
    learning_rate: Rate
    generator_learning_rate: Rate
    cosine: bool = Field(default=False, exclude_if=operator.not_)
    teacher_hidden: Width
    latent: Width
    high_noise: HighNoise | None = Field(default=None, exclude_if=operator.not_)
    weak_plan: Literal["refuse", "warn"] = "refuse"

    @model_validator(mode="after")
    def _automatic_by_a_rule(self):
        if self.teachers == AUTO and self.teachers_rule is None:
            rule = f"a mapping with 'teachers_rule', which says what teachers {AUTO!r} is"
            raise PydanticCustomError("rule", "must be {rule}", {"rule": rule})
        return self


class Joint(Block):
    """Holds whom those trust who release together.

    Attributes:
        colluding: t, how many clients may collude with the server. `half` is half of those that
            release together, rounded down.
        may_drop: How many clients may drop out between machines. Each client adds more noise for
            it.
    """

    colluding: Annotated[int | Literal["half"], _count_or(HALF)] = HALF
    # left out where it changes nothing, as `mirror`
    may_drop: number(int, "[0, 1000]") = Field(default=0, exclude_if=operator.not_)

    def number_colluding(self, clients: int) -> int:
        """Returns t, which is below K.

        It is 1 at least where K is more: every client gets the release and knows its own share of
        the noise.

        Args:
            clients: K, how many clients make the release together.
        """
        wanted = clients // 2 if self.colluding == HALF else self.colluding
        return min(wanted, clients - 1)


class JointDatalens(Joint, Datalens):
    """Holds the settings of DataLens with the teachers of several clients together."""


class LowEpsilon(Block):
    """Holds values that replace those of `DpMoments` for an epsilon below `below`."""

    below: Positive
    residual_clip: Norm
    first_share: Part
    inflation: Factor


class DpMoments(Block):
    """Holds the settings of the generator that releases noisy moments of each class."""

    centre: number(float, "[0, 1]") = 0.0
    cutoff: Count
    clip: Norm
    count_weight: Factor
    residual_clip: Norm
    first_share: Part
    inflation: Factor = 1.0
    contrast: Factor = 1.0
    # left out where it changes nothing, for ledgers and stored figures know settings by what is written
    mirror: bool = Field(default=False, exclude_if=operator.not_)
    low_epsilon: LowEpsilon | None = None


class LowSignal(Block):
    """Holds values that replace those of `JointMoments` where the signal is below `below`.

    The signal is a public number: mu times the declared records of all clients, divided by
    `Group.excess`, the factor by which their noise exceeds the planned one.
    """

    below: Positive
    cutoff: Count
    residual_clip: Norm
    first_share: Part
    inflation: Factor


class JointMoments(Joint, DpMoments):
    """Holds the settings of noisy moments of several clients' records together.

    `low_signal` counts in place of `low_epsilon` where numbers of records are declared.
    """

    low_signal: LowSignal | None = None


class WarmStart(Block):
    """Holds the training on synthetic images before noisy training."""

    images: Count
    epochs: Count
    batch: Count
    learning_rate: Rate


class DpTeacher(DpMoments):
    """Holds the settings of noisy moments, and of the noisy classifier that relabels its images."""

    teacher_share: Part
    steps: Count
    clipping_norm: Norm
    learning_rate: Rate
    momentum: Fraction = 0.0
    averaging: Fraction = 0.0
    classifier: Literal["mlp", "cnn"]
    augmentation: Augmentation | None = None
    warm_start: WarmStart


class DpHead(Head, DpMoments):
    """Holds the settings of noisy moments, and of a noisy linear head on fixed features.

    Attributes:
        head_share: The share of mu squared that buys the head. 1 leaves no images.
    """

    head_share: Share


class JointHead(Joint, DpHead):
    """Holds the settings of noisy moments and a noisy head of several clients' records together."""


class DpMerf(Block):
    """Holds the settings of DP-MERF: noisy means of random features."""

    features: number(int, "[2, 1e6]")
    length_scale: Positive
    count_weight: Factor
    network: Literal["mlp", "cnn"]
    steps: Count
    batch: number(int, "[2, 1e6]")
    learning_rate: Rate


class Gan(Block):
    """Holds the settings of a GAN without privacy."""

    generator_network: GeneratorNetwork
    discriminator_network: TeacherNetwork
    wrong_labels: bool = False
    steps: Count
    batch: number(int, "[2, 1e6]")
    learning_rate: Rate
    hidden: Width
    latent: Width


# The generators that add no noise, whatever budget their client asks for.
WITHOUT_NOISE = ("gan",)
# The generators that clients fit together, in one release.
JOINT = ("joint_moments", "joint_head", "joint_datalens")
# The generators with a linear head on fixed features.
HEADS = ("dp_head", "joint_head")
# The generators that release a classifier beside their images.
WITH_CLASSIFIER = ("dp_teacher", *HEADS)


def _generator(name: object) -> object:
    if not isinstance(name, str) or name not in GENERATORS:
        *names, last = map(repr, GENERATORS)
        rule = f"one of {', '.join(names)} or {last}"
        raise PydanticCustomError("rule", "must be {rule}", {"rule": rule})
    return name


class Synthesis(Block):
    """Holds the blocks of all generators.

    Attributes:
        generators: The names of those that run.
    """

    generators: list[Annotated[str, BeforeValidator(_generator)]]
    datalens: Datalens
    joint_datalens: JointDatalens
    dp_merf: DpMerf
    dp_moments: DpMoments
    joint_moments: JointMoments
    dp_head: DpHead
    joint_head: JointHead
    dp_teacher: DpTeacher
    gan: Gan


GENERATORS = {
    name: field.annotation for name, field in Synthesis.model_fields.items() if name != "generators"
}
