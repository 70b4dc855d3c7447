"""What a client does with a noisy gradient: optimisers, whose state stays from round to round.

All of it is post-processing of released gradients.
"""

import math

import torch

from pipelines.config.dp import Dpsgd

BETAS = (0.9, 0.999)
FLOOR = 1e-8
# of what chance leaves of noise in a second moment: above, there is something else
DEVIATIONS = 3.0


def build(parameters, settings: Dpsgd) -> torch.optim.Optimizer:
    """Returns an optimiser whose `step` takes `variance`: of the noise in each number of a gradient."""
    if settings.optimiser == "sgd":
        return Sgd(parameters, lr=settings.learning_rate, momentum=settings.momentum)
    kind = CorrectedAdam if settings.optimiser == "adam_corrected" else Adam
    return kind(parameters, lr=settings.learning_rate, betas=BETAS)


class Sgd(torch.optim.SGD):
    """Steps as SGD. The noise makes no difference."""

    def step(self, variance: float) -> None:
        """Takes one step along `grad`."""
        super().step()


class Adam(torch.optim.Adam):
    """Steps as Adam. The noise makes no difference."""

    def step(self, variance: float) -> None:
        """Takes one step along `grad`."""
        super().step()


class CorrectedAdam(torch.optim.Optimizer):
    """Steps as Adam without the noise in its second moment (DP-AdamBC, Tang et al. 2024).

    The mean of squares v holds the squared gradient plus the noise's variance. What is known is taken
    off: the same moving average of the variances, which differ where the noise or the clipping norm
    does. What is left is held above the paper's floor gamma', which it tunes. Here the floor is what
    chance leaves of noise alone, so that a weight whose gradients cannot be told from noise does not
    move by its noise over next to nothing. (A squared normal number has twice its squared mean as
    variance; their sum with weights w, that with w^2.)
    """

    def __init__(
        self, parameters, lr: float, betas: tuple[float, float] = BETAS, floor: float = FLOOR
    ):
        defaults = {"lr": lr, "betas": betas, "floor": floor}
        super().__init__(parameters, {**defaults, "count": 0, "noise": 0.0, "squared": 0.0})

    @torch.no_grad()
    def step(self, variance: float) -> None:
        """Takes one step along `grad`, whose noise has this variance."""
        for group in self.param_groups:
            second = group["betas"][1]
            group["count"] += 1
            group["noise"] = second * group["noise"] + (1 - second) * variance
            group["squared"] = second**2 * group["squared"] + (1 - second) ** 2 * variance**2
            for parameter in group["params"]:
                self._move(parameter, group)

    def _move(self, parameter: torch.Tensor, group: dict) -> None:
        state = self.state[parameter]
        first, second = group["betas"]
        correction = 1 - second ** group["count"]
        for name in ("m", "v"):
            state.setdefault(name, torch.zeros_like(parameter))
        state["m"].lerp_(parameter.grad, 1 - first)
        state["v"].lerp_(parameter.grad.square(), 1 - second)
        mean = state["m"] / (1 - first ** group["count"])
        square = (state["v"] - group["noise"]) / correction
        by_chance = DEVIATIONS * math.sqrt(2 * group["squared"]) / correction
        floor = max(group["floor"], by_chance)
        parameter -= group["lr"] * mean / square.clamp(min=floor).sqrt()
