"""Teaches the generator: it shows fakes, and follows the noisy votes on them.

It reads public numbers and what was released, and no private record.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from pipelines.config.generators import Datalens
from pipelines.synthesis import neural
from pipelines.synthesis.base import Space
from pipelines.synthesis.datalens import votes


@dataclass(frozen=True)
class Question:
    """Holds the fakes of a step, on the student's device.

    Attributes:
        z: The latents [B, latent].
        labels: int64 [B].
        fakes: Images [B, C, H, W].
    """

    z: torch.Tensor
    labels: torch.Tensor
    fakes: torch.Tensor

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns fakes and labels as teachers take them."""
        return self.fakes.cpu().numpy(), self.labels.cpu().numpy()


class Student:
    """Holds a generator that learns by votes.

    Args:
        settings: The settings of `synthesis.datalens`, with a number of teachers.
        space: What is public about the images.
        seed: The seed of weights and latents.
        on: The device.

    Attributes:
        training: The generator in training, for checkpoints and its state.
    """

    def __init__(self, settings: Datalens, space: Space, seed: int, on: torch.device):
        self.settings = settings
        self.space = space
        network = neural.generator(
            settings.generator_network, space, latent=settings.latent, seed=seed
        ).to(on)
        optimiser = torch.optim.Adam(
            network.parameters(), lr=settings.generator_learning_rate, betas=(0.5, 0.999)
        )
        stream = torch.Generator().manual_seed(seed + 2)
        self.training = neural.Training(network, optimiser, stream)

    def ask(self, step: int) -> Question:
        """Returns the fakes of a step. Labels in turn go on where the last step ended."""
        network = self.training.network
        on = next(network.parameters()).device
        z, labels = network.draw(self.settings.batch, self.training.stream)
        if self.settings.labels == "in_turn":
            first = step * self.settings.batch
            labels = torch.arange(first, first + self.settings.batch) % network.classes
        z = z.to(on)
        labels = labels.to(on)
        with torch.no_grad():
            fakes = network(z, labels)
        return Question(z, labels, fakes)

    def learn(self, step: int, question: Question, noisy: np.ndarray) -> None:
        """Takes generator steps towards where the votes point: post-processing, free.

        Args:
            step: The number of the step, from 0.
            question: The fakes that were voted on, from `ask`.
            noisy: The noisy votes [B, d].
        """
        network = self.training.network
        optimiser = self.training.optimiser
        settings = self.settings
        optimiser.param_groups[0]["lr"] = learning_rate(step, settings)
        where = direction(noisy, settings, self.space)
        moved = target(question.fakes, where, settings.step_length)
        for _ in range(settings.generator_steps):
            optimiser.zero_grad(set_to_none=True)
            (network(question.z, question.labels) - moved).square().sum().backward()
            optimiser.step()

    def rounds(self, step: int) -> int:
        """Returns how many training steps every teacher takes before it votes in a step."""
        return self.settings.teacher_steps + (self.settings.teacher_warmup if step == 0 else 0)


def learning_rate(step: int, settings: Datalens) -> float:
    """Returns the generator's learning rate in a step, counted from 0."""
    if not settings.cosine:
        return settings.generator_learning_rate
    turn = math.pi * step / settings.steps
    return settings.generator_learning_rate * (1 + math.cos(turn)) / 2


def direction(noisy: np.ndarray, settings: Datalens, space: Space) -> np.ndarray:
    """Returns where the noisy votes say that each fake should go, [B, d]; post-processing, free.

    Args:
        noisy: The noisy votes [B, d].
        settings: `centre_votes`, `threshold`, `teachers` and `vote_cutoff` apply.
        space: The shape of the images.
    """
    centred = votes.centred(noisy, settings.centre_votes)
    thresholded = votes.thresholded(centred, settings.threshold, settings.teachers)
    return votes.smoothed(thresholded, settings.vote_cutoff, space.shape)


def target(fakes: torch.Tensor, direction: np.ndarray, step_length: float) -> torch.Tensor:
    """Returns the fakes moved along their votes by `step_length`, rms per pixel.

    Args:
        fakes: Images [B, C, H, W].
        direction: Where each should go, [B, d].
        step_length: How far.
    """
    move = torch.from_numpy(direction).float().reshape(fakes.shape).to(fakes.device)
    rms = move.flatten(1).square().mean(1).sqrt().clamp(min=1e-12)
    return fakes + step_length * move / rms[:, None, None, None]
