"""A client of DP-SGD: what it holds between rounds, and the parts of a noisy step.

The algorithm in `algorithms/dpsgd` puts the parts in their order.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from pipelines.datasets.labelled_images import Images
from pipelines.federation.core.control_variates import NoisyVariate, named, parted
from pipelines.federation.core.messages import ClientState, Payload, Scalar
from pipelines.federation.dp import clipping, optimisers
from pipelines.federation.dp.account import Account
from pipelines.privacy import float_gaussian
from pipelines.privacy.noise import Noise
from pipelines.privacy.per_sample import Lot, Scaled
from pipelines.training.fixed_features import without_fixed_part
from pipelines.training.tensors import state_of, tensors, with_state


class NoisyGradient(NamedTuple):
    """Holds what a step released, over the expected lot.

    Attributes:
        values: float64 [d], the gradient of all parameters in a row.
        squares: its squared L2 norm.
        noise_stddev: that of the noise on each of its numbers.
    """

    values: np.ndarray
    squares: float
    noise_stddev: float

    @property
    def signal_to_noise(self) -> float:
        """Returns by what factor `squares` is above that of noise alone, less 1."""
        return float_gaussian.signal_to_noise(self.squares, self.values.size, self.noise_stddev)


class Client(ClientState):
    """Holds one client between rounds: its network, records, account, clipping norm, optimiser and noise.

    Args:
        model: the client's own network.
        data: its private records.
        account: its budget, and what was taken of it.
        noise: the source of its noise and lots.
    """

    def __init__(self, model: nn.Module, data: Images, account: Account, noise: Noise):
        self.account = account
        self.noise = noise
        images, self.labels = tensors(data, next(model.parameters()).device)
        self.model, self.images = without_fixed_part(model, images)
        self.clip = clipping.Clip(account.settings)
        self.optimiser = optimisers.build(model.parameters(), account.settings)
        self.variate = NoisyVariate(model) if account.settings.control_variates else None
        self.taken = []

    @property
    def memory(self) -> dict:
        """Returns what was asked of the account, and what followed from releases."""
        return {
            "taken": self.taken,
            "norm": self.clip.norm,
            "optimiser": self.optimiser.state_dict(),
            "variate": self.variate and self.variate.variate,
            "noise": self.noise.position,
        }

    def restore(self, memory: dict) -> None:
        """Charges again all that was charged, and goes on from what followed."""
        self.taken = memory["taken"]
        self.clip.norm = memory["norm"]
        for asked, factor in self.taken:
            self.account.take(asked, factor)
        self.optimiser.load_state_dict(memory["optimiser"])
        if self.variate:
            self.variate.variate = memory["variate"]
        self.noise.move_to(memory["noise"])

    def charge(self, instructions: dict[str, Scalar]) -> int:
        """Charges the account for a round before anything is drawn.

        Returns:
            As many steps as the server asks for, fewer where the budget ends, 0 where it has.
        """
        asked = int(min(instructions["local_steps"], self.account.planned))
        factor = instructions["noise_factor"]
        steps = self.account.take(asked, factor)
        self.taken.append((asked, factor))
        return steps

    def load(self, payload: Payload) -> None:
        """Puts in place what the server sent: weights, clipping norm, control variate."""
        weights, control = parted(payload.arrays)
        with_state(self.model, weights)
        self.clip.follow(payload.scalars.get("clipping_norm", math.nan))
        if self.variate:
            self.variate.begin(control)

    def draw_records(self) -> torch.Tensor:
        """Draws each record by itself at the sampling rate, bool [n]."""
        rate = self.account.settings.sampling_rate
        drawn = torch.from_numpy(self.noise.uniform(len(self.labels)) < rate)
        return drawn.to(self.labels.device)

    def lot_of(self, drawn: torch.Tensor) -> Lot:
        """Returns the lot of the records that are drawn, bool [n]."""
        return Lot(self.images[drawn], self.labels[drawn], self.clip.rule)

    def draw_lot(self) -> Lot:
        """Draws the Poisson lot of one step."""
        return self.lot_of(self.draw_records())

    def add_noise(self, clipped: Scaled) -> NoisyGradient:
        """Releases a lot's clipped sum with noise, over the expected lot.

        Sensitivity of the sum: C, add or remove one record. Accounted by `charge`.
        """
        expected_lot = self.account.settings.expected_lot
        stddev = self.clip.noise_stddev(self.account.noise_multiplier)
        arrays = [clipped.total[name].flatten() for name, _ in self.model.named_parameters()]
        gradient_sum = torch.cat(arrays).cpu().numpy()
        noisy_sum = float_gaussian.release(gradient_sum, deviation=stddev, noise=self.noise)
        values = noisy_sum / expected_lot
        # not as a product: BLAS adds in an order that follows from its threads
        squares = float(np.square(values).sum())
        return NoisyGradient(values, squares, stddev / expected_lot)

    def step(self, gradient: NoisyGradient) -> None:
        """Steps along a released gradient: control variate, then optimiser. It is post-processing."""
        parameters = list(self.model.parameters())
        values = torch.from_numpy(gradient.values).to(parameters[0])
        sizes = [parameter.numel() for parameter in parameters]
        for parameter, part in zip(parameters, values.split(sizes)):
            parameter.grad = part.view_as(parameter)
        if self.variate:
            self.variate.straighten(self.model)
        self.optimiser.step(gradient.noise_stddev**2)

    def adapt_clipping(self, clipped: Scaled, gradient: NoisyGradient) -> None:
        """Sets the next step's clipping norm.

        The norms of the lot are private: they enter a noisy sum alone, which the step's charge covers.
        """
        multiplier = self.account.noise_multiplier
        self.clip.adapt(clipped.norms, multiplier, self.noise, math.sqrt(gradient.squares))

    def reply(self, ratios: list[float]) -> Payload:
        """Returns the answer of a round: released weights, and what the account and releases tell.

        Args:
            ratios: the signal-to-noise ratio of each step's gradient.
        """
        change = self.variate.end() if self.variate else {}
        scalars = {
            "steps": self.account.steps,
            **self.account.running,
            "signal_to_noise": sum(ratios) / len(ratios),
            "noise_multiplier": self.account.noise_multiplier,
            "clipping_norm": self.clip.norm,
            "left": self.account.left,
        }
        return Payload({**state_of(self.model), **named(change)}, scalars)
