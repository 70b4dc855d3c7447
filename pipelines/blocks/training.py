"""Blocks of params.yaml about classifiers: PPPFL, the methods beside it, and what happens at home."""

from typing import Literal

from pipelines.rules import Block, Count, OpenFraction, Positive, Share


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
    every: Count | None


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
