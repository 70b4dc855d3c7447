"""Blocks of params.yaml about DP-SGD in a federation."""

from typing import Literal

from pipelines.blocks.data import Network
from pipelines.rules import Block, Count, Fraction, OpenFraction, Positive, Share


class Dpsgd(Block):
    rounds: Count
    local_steps: Count
    local_steps_rule: Literal["fixed", "ratio", "paper", "paper_corrected", "local_sgd"]
    most_local_steps: Count
    prior_distance: Positive
    sampling_rate: OpenFraction
    expected_lot: Positive
    noise_multiplier: Positive | None
    noise_control: Literal["const", "falling_loss", "plateau"]
    noise_decay: Share
    noise_threshold: Positive
    noise_least: Positive
    clipping: Literal["const", "quantile", "auto_s"]
    clipping_norm: Positive
    clipping_quantile: OpenFraction
    clipping_rate: Positive
    clipping_noise: Positive
    optimiser: Literal["sgd", "adam", "adam_corrected"]
    learning_rate: Positive
    momentum: Fraction
    averaging: Fraction
    network: Network | None
    activation: Literal["relu", "tanh"]


class DpBaselines(Block):
    algorithms: list[Literal["dpsgd", "adap", "agn", "ali"]]
    dpsgd: Dpsgd
    adap: Dpsgd
    agn: Dpsgd
    ali: Dpsgd


DP_BASELINES = tuple(name for name in DpBaselines.model_fields if name != "algorithms")
