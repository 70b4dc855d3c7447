"""Federated DP-SGD: each client takes noisy steps on its private records within its own budget; the server averages.

Released per step: the sum over a Poisson lot of gradients scaled to at most C (sensitivity C, add or remove one
record), with noise, and by some clip modes a noisy count (`clipping`). Divided by a public expected lot, never by a
true count. Accounted per client before each step (`account`). An empty lot is noised and counted like any other. Noise
and lots come from a generator seeded by the operating system. Everything after the noise is post-processing.
"""

import hashlib
from dataclasses import dataclass, replace

import torch
from torch import nn

from pipelines.blocks.data import Profile
from pipelines.datasets.containers import Images
from pipelines.federation.dp import optimisers
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.clipping import Clip
from pipelines.federation.messages import Payload, Reply, Server, weighted_mean
from pipelines.privacy.ledger import Release
from pipelines.privacy.per_sample import scaled_sum
from pipelines.privacy.statement import Statement
from pipelines.training.tensors import State, state_of, tensors, with_state

VERSION = 2  # of the mechanism, in the ledger: raise it when the same parameters would release something else


@dataclass(frozen=True)
class DpServer(Server):
    """weights: the average over rounds, which is the model. latest: what each round begins with at the clients."""

    latest: State
    averaging: float
    round: int = 0

    @property
    def sent(self) -> State:
        return self.latest


class Client:
    """One client between rounds: network, records, account, clipping norm, optimiser and stream are its own."""

    def __init__(self, model: nn.Module, data: Images, account: Account, generator: torch.Generator):
        self.model, self.account, self.generator = model, account, generator
        self.images, self.labels = tensors(data, next(model.parameters()).device)
        self.clip = Clip(account.settings)
        self.optimiser = optimisers.build(model.parameters(), account.settings)

    def update(self, payload: Payload) -> Payload | None:
        """`local_steps` noisy steps from the global model, fewer where the budget ends; None where it has."""
        steps = self.account.take(self.account.settings.local_steps)
        if not steps:
            return None
        with_state(self.model, payload.arrays)
        shares = [self.step() for _ in range(steps)]
        told = {"steps": self.account.steps, "noise_share": sum(shares) / steps, "clipping_norm": self.clip.norm}
        return Payload(state_of(self.model), told)

    def step(self) -> float:
        """One noisy step; the share of the released gradient's squared norm that its noise would have alone."""
        rate = self.account.settings.sampling_rate
        lot = torch.rand(len(self.labels), generator=self.generator, device=self.generator.device) < rate
        return self.noisy_step(lot.to(self.labels.device))

    def noisy_step(self, lot: torch.Tensor) -> float:
        """`step` on a given lot, bool [n]."""
        settings, multiplier = self.account.settings, self.account.noise_multiplier
        total, norms = scaled_sum(self.model, self.images[lot], self.labels[lot], self.clip.rule)
        deviation = self.clip.deviation(multiplier)
        for name, parameter in self.model.named_parameters():
            noise = torch.randn(parameter.shape, generator=self.generator, device=self.generator.device)
            parameter.grad = (total[name] + deviation * noise.to(parameter.device)) / settings.expected_lot
        variance = (deviation / settings.expected_lot) ** 2
        self.optimiser.step(variance)
        self.clip.adapt(norms, multiplier, self.generator)
        return _noise_share(self.model, variance)


def server(weights: State, averaging: float) -> DpServer:
    return DpServer(weights, weights, averaging)


def server_step(state: DpServer, replies: list[Reply]) -> DpServer:
    """The plain mean, for weights by size would tell the server the sizes; then its average over rounds, of all so far
    until that remembers as much as `averaging` does."""
    latest, number = weighted_mean(replies, [1.0] * len(replies)), state.round + 1
    past = min(state.averaging, (number - 1) / number)
    weights = {name: past * state.weights[name] + (1 - past) * latest[name] for name in latest}
    return replace(state, weights=weights, latest=latest, round=number)


def entry(statement: Statement, *, data: list[str], client: str, profile: Profile, seed: int) -> Release:
    """One client's part of the joint run, as its ledger enters it: all planned steps. `data` names everyone's part."""
    details = statement.details
    schedule = [[details["noise_multiplier"], details["settings"]["sampling_rate"], details["steps"]]]
    network = {"shape": profile.shape, "classes": profile.classes, "classifier": profile.classifier}
    budget = {"epsilon": statement.epsilon, "delta": statement.delta, "noise": statement.noise}
    formal = statement.guarantee == "formal"
    return Release(
        mechanism="dpsgd",
        version=VERSION,
        parameters={**details, **budget, **network, "client": client, "seed": seed},
        data=hashlib.sha256("".join(data).encode()).hexdigest(),
        cost={"kind": "sampled_gaussian", "schedule": schedule} if formal else {"kind": "none"},
        statement=statement.as_dict(),
    )


def _noise_share(model: nn.Module, variance: float) -> float:
    """From what is released alone: near 1 where the gradient drowns."""
    squares = sum(parameter.grad.square().sum().item() for parameter in model.parameters())
    size = sum(parameter.numel() for parameter in model.parameters())
    return min(1.0, size * variance / squares) if variance and squares else 0.0
