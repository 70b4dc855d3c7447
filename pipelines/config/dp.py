"""Declares the settings of noisy training in a federation."""

from typing import Literal

from pipelines.config.data import Network
from pipelines.config.generators import WarmStart
from pipelines.config.heads import Head
from pipelines.config.training import Fedprox
from pipelines.config.values import (
    Block,
    Count,
    Factor,
    Fraction,
    Multiplier,
    Norm,
    OpenFraction,
    Part,
    Rate,
    Records,
    Share,
    number,
)

# The least factor on a client's first noise multiplier. The client's `noise_least` holds, too.
LEAST_FACTOR = 1e-6
# The least share of the first round's noise that planned noise may fall to.
LEAST_FALL = 1e-3
# The least decay of noise that follows the loss. DPFL-AGN prints 0.001 for one, which spends a
# budget in a step.
LEAST_DECAY = 0.9
# The choices that need no image of the server's. All other choices look at public images.
NEEDING_NO_IMAGES = {
    "noise_control": ["const", "scheduled"],
    "local_steps_rule": ["fixed", "ratio"],
    "clipping": [
        "const",
        "quantile",
        "auto_s",
        "paper_scalar",
        "paper_vector",
        "nonprivate_oracle",
    ],
}


class SharedWarmStart(WarmStart):
    """Holds a warm start that all clients share.

    Attributes:
        share: The share of the budget's mu squared that the images of the warm start cost.
    """

    share: Part


class Dpsgd(Block):
    """Holds the settings of DP-SGD in a federation, and of the algorithms that adapt its noise."""

    rounds: Count
    local_steps: Count
    local_steps_rule: Literal["fixed", "ratio", "paper", "paper_corrected", "local_sgd"] = "fixed"
    most_local_steps: Count
    prior_distance: number(float, "[1e-6, 1e6]")
    sampling_rate: OpenFraction
    expected_lot: number(float, "[1e-3, 1e9]")
    noise_multiplier: Multiplier | None = None
    noise_control: Literal["const", "scheduled", "falling_loss", "plateau"] = "const"
    noise_decay: Share = 1.0
    noise_threshold: number(float, "[1e-9, 1e3]")
    noise_least: Multiplier
    clipping: Literal[
        "const", "quantile", "auto_s", "proxy", "paper_scalar", "paper_vector", "nonprivate_oracle"
    ] = "const"
    clipping_norm: Norm
    clipping_factor: Factor = 1.0
    clipping_quantile: OpenFraction
    clipping_rate: Factor
    clipping_noise: Factor
    allow_nonprivate: bool = False
    control_variates: bool = False
    optimiser: Literal["sgd", "adam", "adam_corrected"] = "sgd"
    learning_rate: Rate
    momentum: Fraction = 0.0
    averaging: Fraction = 0.0
    network: Network | None = None
    activation: Literal["relu", "tanh"] = "relu"
    warm_start: SharedWarmStart | None = None


class Nbafl(Fedprox):
    """Holds the settings of NbAFL, which adds noise to what a client sends each round."""

    bound: Literal["sound", "paper"] = "sound"
    clipping_norm: Norm
    records: Records
    network: Network | None = None
    activation: Literal["relu", "tanh"] = "relu"
    warm_start: SharedWarmStart | None = None


class DpsgdHead(Head):
    """Holds the settings of noisy full-batch steps of a head that all clients share.

    Attributes:
        rounds: At most: one for the noisy numbers of records, and one for each step.
    """

    rounds: number(int, "[2, 1e6]")
    activation: Literal["relu"] = "relu"
    warm_start: None = None


class DpBaselines(Block):
    """Holds the blocks of all noisy algorithms.

    Attributes:
        algorithms: The names of those that run.
    """

    algorithms: list[Literal["dpsgd", "dpsgd_warm", "nbafl", "adap", "agn", "ali", "dpsgd_head"]]
    dpsgd: Dpsgd
    dpsgd_warm: Dpsgd
    nbafl: Nbafl
    adap: Dpsgd
    agn: Dpsgd
    ali: Dpsgd
    dpsgd_head: DpsgdHead


DP_BASELINES = tuple(name for name in DpBaselines.model_fields if name != "algorithms")


def looks_at_images(settings: Block) -> str:
    """Returns the first field whose value needs images that the server may see; "" if none does.

    Args:
        settings: The block of a noisy algorithm.
    """
    for field, plain in NEEDING_NO_IMAGES.items():
        if getattr(settings, field, plain[0]) not in plain:
            return field
    return ""


def disagreement(block: Dpsgd) -> tuple[str, str] | None:
    """Returns (field, rule) of the first setting that does not agree with another one, or None."""
    return _steps_mistake(block) or _noise_mistake(block) or _clipping_mistake(block)


def _steps_mistake(block: Dpsgd) -> tuple[str, str] | None:
    """Returns (field, rule) of local steps that do not agree with the noise, or None."""
    falls = block.noise_control in ("falling_loss", "plateau")
    if block.local_steps_rule == "fixed":
        return None
    if block.noise_control == "scheduled":
        rule = (
            "'fixed' where noise_control is scheduled: the plan says which round has how much noise"
        )
        return "local_steps_rule", rule
    if falls and block.noise_multiplier is None:
        rule = (
            f"a float above 0 where noise_control is {block.noise_control} and "
            "local_steps_rule not fixed"
        )
        return "noise_multiplier", rule
    if block.most_local_steps < block.local_steps:
        return "most_local_steps", f"at least local_steps, {block.local_steps}"
    return None


def _noise_mistake(block: Dpsgd) -> tuple[str, str] | None:
    """Returns (field, rule) of noise that would fall too far, or None."""
    falls = block.noise_control in ("falling_loss", "plateau")
    if falls and block.noise_decay < LEAST_DECAY:
        rule = (
            f"at least {LEAST_DECAY:g} where noise_control is {block.noise_control}: "
            "few falls would spend all"
        )
        return "noise_decay", rule
    planned = block.noise_control == "scheduled" or (falls and block.noise_multiplier is None)
    if planned and block.noise_decay**block.rounds < LEAST_FALL:
        rule = (
            f"nearer to 1: over {block.rounds} rounds the noise would fall to less than a "
            "thousandth"
        )
        return "noise_decay", rule
    return None


def _clipping_mistake(block: Dpsgd) -> tuple[str, str] | None:
    """Returns (field, rule) of clipping that is not private and not meant to be, or None."""
    if block.clipping == "nonprivate_oracle" and not block.allow_nonprivate:
        rule = (
            "another mode, or allow_nonprivate true: it takes norms from private gradients "
            "without noise"
        )
        return "clipping", rule
    return None
