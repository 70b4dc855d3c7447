"""Declares the settings of noisy training in a federation."""

from typing import Literal

from pipelines.config.data import Network
from pipelines.config.generators import WarmStart
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


class DpBaselines(Block):
    """Holds the blocks of all noisy algorithms.

    Attributes:
        algorithms: The names of those that run.
    """

    algorithms: list[Literal["dpsgd", "dpsgd_warm", "nbafl", "adap", "agn", "ali"]]
    dpsgd: Dpsgd
    dpsgd_warm: Dpsgd
    nbafl: Nbafl
    adap: Dpsgd
    agn: Dpsgd
    ali: Dpsgd


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
