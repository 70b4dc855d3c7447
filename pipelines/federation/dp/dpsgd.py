"""Federated DP-SGD at a client: noisy steps on its private records within its own budget.

Released per step: the sum over a Poisson lot of gradients scaled to at most C (sensitivity C, add or remove one
record), with noise, and by some clip modes a noisy count (`clipping`). Divided by a public expected lot, never by a
true count. Accounted per client before each step (`account`). An empty lot is noised and counted like any other. Noise
and lots come from a generator seeded by the operating system. Everything after the noise is post-processing.
"""

import hashlib

import torch
from torch import nn

from pipelines.blocks.data import Profile
from pipelines.datasets.containers import Images
from pipelines.federation.dp import optimisers
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.clipping import Clip
from pipelines.federation.messages import Payload
from pipelines.privacy.ledger import Release
from pipelines.privacy.per_sample import scaled_sum
from pipelines.privacy.statement import Statement
from pipelines.training.tensors import state_of, tensors, with_state

VERSION = 2  # of the mechanism, in the ledger: raise it when the same parameters would release something else


class Client:
    """One client between rounds: network, records, account, clipping norm, optimiser and stream are its own."""

    def __init__(self, model: nn.Module, data: Images, account: Account, generator: torch.Generator):
        self.model, self.account, self.generator = model, account, generator
        self.images, self.labels = tensors(data, next(model.parameters()).device)
        self.clip = Clip(account.settings)
        self.optimiser = optimisers.build(model.parameters(), account.settings)

    def update(self, payload: Payload) -> Payload | None:
        """As many noisy steps from the global model as the server asks for, fewer where the budget ends; None where it
        has."""
        asked = min(payload.scalars["local_steps"], self.account.planned)
        steps = self.account.take(asked, payload.scalars["noise_factor"])
        if not steps:
            return None
        with_state(self.model, payload.arrays)
        shares = [self.step() for _ in range(steps)]
        account = self.account
        told = {"steps": account.steps, "epsilon_spent": account.epsilon_spent, "noise_share": sum(shares) / steps}
        told |= {"noise_multiplier": account.noise_multiplier, "clipping_norm": self.clip.norm, "left": account.left}
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


def entry(
    algorithm: str, statement: Statement, cost: dict, *, data: list[str], client: str, profile: Profile, seed: int
) -> Release:
    """One client's part of the joint run, as its ledger enters it: all planned steps. `data` names everyone's part."""
    network = {"shape": profile.shape, "classes": profile.classes, "classifier": profile.classifier}
    budget = {"epsilon": statement.epsilon, "delta": statement.delta, "noise": statement.noise}
    return Release(
        mechanism=algorithm,
        version=VERSION,
        parameters={**statement.details, **budget, **network, "client": client, "seed": seed},
        data=hashlib.sha256("".join(data).encode()).hexdigest(),
        cost=cost if statement.guarantee == "formal" else {"kind": "none"},
        statement=statement.as_dict(),
    )


def _noise_share(model: nn.Module, variance: float) -> float:
    """From what is released alone: near 1 where the gradient drowns."""
    squares = sum(parameter.grad.square().sum().item() for parameter in model.parameters())
    size = sum(parameter.numel() for parameter in model.parameters())
    return min(1.0, size * variance / squares) if variance and squares else 0.0
