"""Blocks of params.yaml about generators: one under `synthesis` for each, overridden by a profile's."""

from typing import Literal

from pipelines.blocks.data import Augmentation
from pipelines.rules import Block, Count, Fraction, Natural, NonNegative, OpenFraction, Positive, Share, number

TeacherNetwork = Literal["mlp", "compact", "paper"]
GeneratorNetwork = Literal["mlp", "paper", "conv"]


class Datalens(Block):
    teachers: Count
    teacher_network: TeacherNetwork
    generator_network: GeneratorNetwork
    steps: Count
    batch: Count
    top_k: Count
    clip: NonNegative
    stochastic: bool
    threshold: Share | None
    centre_votes: bool
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
    generator_network: GeneratorNetwork
    discriminator_network: TeacherNetwork
    wrong_labels: bool
    steps: Count
    batch: number(int, "[2, inf)")
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
WITHOUT_NOISE = ("gan",)  # whatever budget their client asks for


class Synthesis(Block):
    generators: list[Literal["datalens", "dp_merf", "dp_moments", "dp_teacher", "gan"]]
    datalens: Datalens
    dp_merf: DpMerf
    dp_moments: DpMoments
    dp_teacher: DpTeacher
    gan: Gan
