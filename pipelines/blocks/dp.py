"""Blocks of params.yaml about noisy training in a federation."""

from typing import Literal

from pipelines.blocks.data import Network
from pipelines.blocks.generators import WarmStart
from pipelines.blocks.training import Fedprox
from pipelines.rules import Block, Count, Fraction, OpenFraction, Positive, Share

LEAST_FACTOR = 1e-6  # on a client's first noise multiplier; its own `noise_least` holds besides
CLIPPING_NORMS = (1e-9, 1e9)  # the least and the largest clipping norm that a server may send


class SharedWarmStart(WarmStart):
    """share: of mu squared."""

    share: OpenFraction


class Dpsgd(Block):
    rounds: Count
    local_steps: Count
    local_steps_rule: Literal["fixed", "ratio", "paper", "paper_corrected", "local_sgd"]
    most_local_steps: Count
    prior_distance: Positive
    sampling_rate: OpenFraction
    expected_lot: Positive
    noise_multiplier: Positive | None
    noise_control: Literal["const", "scheduled", "falling_loss", "plateau"]
    noise_decay: Share
    noise_threshold: Positive
    noise_least: Positive
    clipping: Literal["const", "quantile", "auto_s", "proxy", "paper_scalar", "paper_vector", "nonprivate_oracle"]
    clipping_norm: Positive
    clipping_factor: Positive
    clipping_quantile: OpenFraction
    clipping_rate: Positive
    clipping_noise: Positive
    allow_nonprivate: bool
    control_variates: bool
    optimiser: Literal["sgd", "adam", "adam_corrected"]
    learning_rate: Positive
    momentum: Fraction
    averaging: Fraction
    network: Network | None
    activation: Literal["relu", "tanh"]
    warm_start: SharedWarmStart | None


class Nbafl(Fedprox):
    bound: Literal["sound", "paper"]
    clipping_norm: Positive
    records: Count
    network: Network | None
    activation: Literal["relu", "tanh"]
    warm_start: SharedWarmStart | None


class DpBaselines(Block):
    algorithms: list[Literal["dpsgd", "dpsgd_warm", "nbafl", "adap", "agn", "ali"]]
    dpsgd: Dpsgd
    dpsgd_warm: Dpsgd
    nbafl: Nbafl
    adap: Dpsgd
    agn: Dpsgd
    ali: Dpsgd


DP_BASELINES = tuple(name for name in DpBaselines.model_fields if name != "algorithms")
