"""Blocks of params.yaml about generators: one under `synthesis` for each, overridden by a profile's."""

from typing import Literal

from pipelines.config.data import Augmentation
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
    Share,
    Width,
    number,
)

TeacherNetwork = Literal["mlp", "compact", "paper"]
GeneratorNetwork = Literal["mlp", "paper", "conv"]


class Datalens(Block):
    teachers: Count
    teacher_network: TeacherNetwork
    generator_network: GeneratorNetwork
    steps: Count
    batch: Count
    top_k: Count
    clip: number(float, "[0, 1e9]")
    stochastic: bool
    threshold: Share | None
    centre_votes: bool
    vote_cutoff: Count | None
    labels: Literal["in_turn", "uniform"]
    wrong_labels: bool
    teacher_steps: Count
    teacher_warmup: Natural
    generator_steps: Count
    step_length: Factor
    learning_rate: Rate
    generator_learning_rate: Rate
    teacher_hidden: Width
    latent: Width
    weak_plan: Literal["refuse", "warn"]


class LowEpsilon(Block):
    below: Positive
    residual_clip: Norm
    first_share: Part
    inflation: Factor


class DpMoments(Block):
    centre: number(float, "[0, 1]")
    cutoff: Count
    clip: Norm
    count_weight: Factor
    residual_clip: Norm
    first_share: Part
    inflation: Factor
    contrast: Factor
    low_epsilon: LowEpsilon | None


class WarmStart(Block):
    images: Count
    epochs: Count
    batch: Count
    learning_rate: Rate


class DpTeacher(DpMoments):
    teacher_share: Part
    steps: Count
    clipping_norm: Norm
    learning_rate: Rate
    momentum: Fraction
    averaging: Fraction
    classifier: Literal["mlp", "cnn"]
    augmentation: Augmentation | None
    warm_start: WarmStart


class DpMerf(Block):
    features: number(int, "[2, 1e6]")
    length_scale: Positive
    count_weight: Factor
    network: Literal["mlp", "cnn"]
    steps: Count
    batch: number(int, "[2, 1e6]")
    learning_rate: Rate


class Gan(Block):
    generator_network: GeneratorNetwork
    discriminator_network: TeacherNetwork
    wrong_labels: bool
    steps: Count
    batch: number(int, "[2, 1e6]")
    learning_rate: Rate
    hidden: Width
    latent: Width


GENERATORS = {
    "datalens": Datalens,
    "dp_merf": DpMerf,
    "dp_moments": DpMoments,
    "dp_teacher": DpTeacher,
    "gan": Gan,
}
WITHOUT_NOISE = ("gan",)  # whatever budget their client asks for


class Synthesis(Block):
    generators: list[Literal["datalens", "dp_merf", "dp_moments", "dp_teacher", "gan"]]
    datalens: Datalens
    dp_merf: DpMerf
    dp_moments: DpMoments
    dp_teacher: DpTeacher
    gan: Gan
