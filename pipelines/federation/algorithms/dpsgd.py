"""Federated DP-SGD at a client: noisy steps on its private records within its own budget.

Released per step: the sum over a Poisson lot of gradients scaled to at most C (sensitivity C, add or remove one
record), with noise, and by some clip modes a noisy count (`clipping`). Divided by a public expected lot, never by a
true count. Accounted per client before each step (`account`). An empty lot is noised and counted like any other. Noise
and lots come from the operating system. Everything after the noise is post-processing.
"""

import math

import numpy as np
import torch
from torch import nn

from pipelines.datasets.labelled_images import Images
from pipelines.federation.core.control_variates import named, parted
from pipelines.federation.core.messages import Payload
from pipelines.federation.dp import accounts, dpsgd_server, optimisers
from pipelines.federation.dp.account import IDENTITY as ANY_NOISY_RUN
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.clipping import Clip
from pipelines.federation.dp.together import Together
from pipelines.federation.dp.variates import Variate
from pipelines.privacy import float_gaussian
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.privacy.per_sample import Lot, Scaled, scaled_sum
from pipelines.training.tensors import state_of, tensors, with_state

VERSION = 3  # of the mechanism, in the ledger: raise it when the same parameters would release something else
# Not raised where `left` came to be counted at today's noise: a run with falling noise and a rule for local steps that
# was made before is handed back as it was, at no cost. Nor where the model that is watched became the averaged one, nor
# where quantile clipping at another quantile than 0.5 came to be centred there, local_sgd to count all rounds, a
# round's model to be scored on no more public images than its lots hold, or adam_corrected's floor to follow the noise.
IDENTITY = ANY_NOISY_RUN | Identity(
    consequences=frozenset({"epsilon_by_pld_as_planned"}),
    free=frozenset({"settings.allow_nonprivate"}),
    neutral={
        "settings.averaging": 0.0,
        "settings.clipping": "const",
        "settings.control_variates": False,
        "settings.local_steps_rule": "fixed",
        "settings.noise_control": "const",
        "settings.noise_multiplier": None,
        "settings.optimiser": "sgd",
    },
)
account, start, step, engine = accounts.account, dpsgd_server.start, dpsgd_server.step, Together


class Client:
    """One client between rounds: network, records, account, clipping norm, optimiser and stream are its own."""

    def __init__(self, model: nn.Module, data: Images, account: Account, noise: Noise):
        self.model, self.account, self.noise = model, account, noise
        self.images, self.labels = tensors(data, next(model.parameters()).device)
        self.clip = Clip(account.settings)
        self.optimiser = optimisers.build(model.parameters(), account.settings)
        self.variate = Variate(model) if account.settings.control_variates else None
        self.taken = []

    @property
    def memory(self) -> dict:
        """What it hands from round to round: what was asked of its account, and what followed from releases."""
        own = {
            "taken": self.taken,
            "norm": self.clip.norm,
            "optimiser": self.optimiser.state_dict(),
        }
        return {**own, "variate": self.variate and self.variate.own, "noise": self.noise.position}

    @memory.setter
    def memory(self, kept: dict) -> None:
        """Before the first round of a run that goes on: all that was charged is charged."""
        self.taken, self.clip.norm = kept["taken"], kept["norm"]
        for asked, factor in self.taken:
            self.account.take(asked, factor)
        self.optimiser.load_state_dict(kept["optimiser"])
        if self.variate:
            self.variate.own = kept["variate"]
        self.noise.move_to(kept["noise"])

    def __call__(self, payload: Payload) -> Payload | None:
        """As many noisy steps from the global model as the server asks for, fewer where the budget ends; None where it
        has."""
        steps = self.begin(payload)
        return self.end(steps, scaled_sum(self.model, self.lot(self.drawn()))) if steps else None

    def begin(self, payload: Payload) -> int:
        """How many steps, which are charged; 0 where the budget has gone, else with what the server sent in place."""
        asked = (
            int(min(payload.scalars["local_steps"], self.account.planned)),
            payload.scalars["noise_factor"],
        )
        steps = self.account.take(*asked)
        self.taken.append(asked)
        if steps:
            weights, control = parted(payload.arrays)
            with_state(self.model, weights)
            self.clip.follow(payload.scalars.get("clipping_norm", math.nan))
            if self.variate:
                self.variate.begin(control)
        return steps

    def end(self, steps: int, first: Scaled) -> Payload:
        """The steps that were charged, and the answer. first: of a lot at the global weights."""
        ratios = [self.release(first), *(self.step() for _ in range(steps - 1))]
        account = self.account
        told = {"steps": account.steps, **account.running, "signal_to_noise": sum(ratios) / steps}
        told |= {
            "noise_multiplier": account.noise_multiplier,
            "clipping_norm": self.clip.norm,
            "left": account.left,
        }
        return Payload(
            {**state_of(self.model), **named(self.variate.end() if self.variate else {})}, told
        )

    def drawn(self) -> torch.Tensor:
        """bool [n]: each record by itself at the sampling rate, anew for each step."""
        drawn = torch.from_numpy(
            self.noise.uniform(len(self.labels)) < self.account.settings.sampling_rate
        )
        return drawn.to(self.labels.device)

    def lot(self, drawn: torch.Tensor) -> Lot:
        return Lot(self.images[drawn], self.labels[drawn], self.clip.rule)

    def step(self) -> float:
        """One noisy step; the signal-to-noise ratio of the gradient that it released."""
        return self.noisy_step(self.drawn())

    def noisy_step(self, drawn: torch.Tensor) -> float:
        """`step` on a given lot, bool [n]."""
        return self.release(scaled_sum(self.model, self.lot(drawn)))

    def release(self, scaled: Scaled) -> float:
        """The rest of a step, from a lot's scaled sum: noise, and all that follows from it."""
        settings, multiplier = self.account.settings, self.account.noise_multiplier
        deviation = self.clip.deviation(multiplier)
        parameters = dict(self.model.named_parameters())
        total = torch.cat([scaled.total[name].flatten() for name in parameters]).cpu().numpy()
        noisy = (
            float_gaussian.release(total, deviation=deviation, noise=self.noise)
            / settings.expected_lot
        )
        # not as a product: BLAS adds in an order that follows from its threads
        squares, spread = float(np.square(noisy).sum()), deviation / settings.expected_lot
        gradient = torch.from_numpy(noisy).to(scaled.total[next(iter(parameters))])
        for parameter, part in zip(
            parameters.values(), gradient.split([p.numel() for p in parameters.values()])
        ):
            parameter.grad = part.view_as(parameter)
        if self.variate:
            self.variate.straighten(self.model)
        self.optimiser.step(spread**2)
        self.clip.adapt(scaled.norms, multiplier, self.noise, math.sqrt(squares))
        return float_gaussian.signal_to_noise(squares, noisy.size, spread)
