"""Federated DP-SGD: each client takes noisy steps on its private records within its own budget; the server averages.

Released per step: the sum over a Poisson lot of gradients clipped to C (sensitivity C, add or remove one record), plus
N(0, (z C)^2). Divided by a public expected lot, never by a true count. Accounted per client before each step by RDP of
the sampled Gaussian (`Budgeted`), and by PLD as the final figure. An empty lot is noised and counted like any other.
Noise and lots come from a generator seeded by the operating system.
"""

import hashlib
from dataclasses import dataclass

import torch
from torch import nn

from pipelines.blocks.data import Profile
from pipelines.blocks.training import Dpsgd
from pipelines.datasets.containers import Images
from pipelines.federation.messages import Payload, Reply, Server, weighted_mean
from pipelines.privacy import accounting
from pipelines.privacy.ledger import Release
from pipelines.privacy.per_sample import clipped_sum
from pipelines.privacy.statement import Statement
from pipelines.training.tensors import state_of, tensors, with_state

VERSION = 1  # of the mechanism, in the ledger: raise it when the same parameters would release something else


@dataclass
class Budgeted:
    """One client's account: steps taken and the most it can afford. The check comes before the step."""

    epsilon: float
    delta: float
    settings: Dpsgd
    steps: int = 0

    def __post_init__(self):
        planned = self.settings.rounds * self.settings.local_steps
        plan = {"epsilon": self.epsilon, "delta": self.delta, "sampling_rate": self.settings.sampling_rate}
        self.noise_multiplier = accounting.noise_for(**plan, steps=planned)
        self.affordable = accounting.steps_for(**plan, noise_multiplier=self.noise_multiplier, at_most=planned)

    def affords(self, steps: int) -> bool:
        return self.steps + steps <= self.affordable

    def schedule(self, steps: int) -> list[accounting.Steps]:
        return [accounting.Steps(self.noise_multiplier, self.settings.sampling_rate, steps)]

    def statement(self, noise, *, steps: int | None = None) -> Statement:
        """What was spent, or will be by `steps`: the RDP figure that stops the run is the claim, PLD's is beside it."""
        steps = self.steps if steps is None else steps
        spent = {"schedule": self.schedule(steps), "delta": self.delta}
        return Statement(
            mechanism="dpsgd (Poisson-sampled Gaussian on clipped gradients)",
            epsilon=accounting.schedule_epsilon(**spent),
            delta=self.delta,
            mu=None,
            guarantee=noise.guarantee if self.noise_multiplier else "none",
            noise="torch normal, generator seeded by the operating system"
            if noise.guarantee == "formal"
            else noise.source,
            accountant="RDP of the sampled Gaussian",
            sampling=f"Poisson, rate {self.settings.sampling_rate:g}",
            details={
                "epsilon_by_pld": accounting.schedule_epsilon_pld(**spent),
                "noise_multiplier": self.noise_multiplier,
                "steps": steps,
                "settings": self.settings.model_dump(),
            },
        )


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


def client_update(
    payload: Payload,
    *,
    model: nn.Module,
    data: Images,
    account: Budgeted,
    generator: torch.Generator,
) -> Payload | None:
    """`local_steps` noisy steps from the global model, or None when the budget does not allow them."""
    settings = account.settings
    if not account.affords(settings.local_steps):
        return None
    with_state(model, payload.arrays)
    on = next(model.parameters()).device
    images, labels = tensors(data, on)
    for _ in range(settings.local_steps):
        account.steps += 1
        lot = torch.rand(len(labels), generator=generator, device=generator.device) < settings.sampling_rate
        _noisy_step(model, images[lot.to(on)], labels[lot.to(on)], account, generator)
    return Payload(state_of(model), {"steps": account.steps})


def server_step(state: Server, replies: list[Reply]) -> Server:
    """The plain mean: weights by size would tell the server the sizes."""
    return Server(weighted_mean(replies, [1.0] * len(replies)))


def _noisy_step(model: nn.Module, images, labels, account: Budgeted, generator: torch.Generator) -> None:
    settings = account.settings
    total = clipped_sum(model, images, labels, settings.clipping_norm)
    deviation = account.noise_multiplier * settings.clipping_norm
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator, device=generator.device).to(parameter.device)
            parameter -= settings.learning_rate * (total[name] + deviation * noise) / settings.expected_lot
