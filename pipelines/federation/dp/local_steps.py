"""How many noisy steps a client takes per round: ALI-DPFL's question, where rounds are scarcer than steps.

Everything here is public: the settings, what the budgets still buy, released weights, and the loss and
its slope on public images (`Facts`). ALI's own code estimates from raw private gradients and losses:
that would be a release. The rules:

* `paper` is ALI's rule from the bound that it prints.
* `paper_corrected` mends the slip in its induction (beta^2 A for its beta^2 + A, by which 4 / mu^2
  leaves the minimum).
* `local_sgd` follows the drift term of local SGD (Stich 2019).
* `ratio` spends all steps over the rounds that are left: what the others must beat.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from pipelines.config.dp import Dpsgd


@dataclass(frozen=True)
class Facts:
    """Holds what a rule may know after a round.

    Attributes:
        tau: the steps of each client in that round.
        steps_left: the fewest that a client's budget still buys.
        rounds_left: how many follow.
        slope: mean over clients of |grad F(w_i) - grad F(w)| / |w_i - w|, of the loss F on public
            images between a client's released weights and their mean. 0 where one client answered,
            whose weights are the mean. NaN where nothing was probed: `ratio` then stands in for the
            rule. Wang et al. (JSAC 2019) estimate the smoothness L so; ALI takes it for mu, the strong
            convexity.
        loss_gap: |mean of F(w_i) - F(w)|, ALI's Gamma.
        spread: mean of |w_i - w|^2.
        clients: how many answered.
        size: the number of parameters.
        noise_multiplier, clipping_norm: the largest of the clients'.
    """

    tau: int
    steps_left: int
    rounds_left: int
    slope: float = math.nan
    loss_gap: float = math.nan
    spread: float = math.nan
    clients: int = 1
    size: int = 1
    noise_multiplier: float = 0.0
    clipping_norm: float = 1.0


def following(settings: Dpsgd, facts: Facts) -> int:
    """Returns tau of the next round, in [1, most_local_steps].

    It is the rule's, and never faster than the budget lasts.
    """
    if settings.local_steps_rule == "fixed":
        return settings.local_steps
    ratio = facts.steps_left / max(1, facts.rounds_left)
    rule = PROBING.get(settings.local_steps_rule) if facts.slope > 0 else None
    asked = min(rule(settings, facts), ratio) if rule else ratio
    return int(min(max(1.0, math.floor(asked + 0.5)), settings.most_local_steps))


def noise_power(settings: Dpsgd, facts: Facts) -> float:
    """Returns D = sigma^2 C^2 d / B^2: the squared norm of the noise in a lot's mean gradient."""
    return (facts.noise_multiplier * facts.clipping_norm / settings.expected_lot) ** 2 * facts.size


def paper(settings: Dpsgd, facts: Facts) -> float:
    """Returns ALI's tau: the minimum of its eq. (21), where T = R tau grows with tau.

    sqrt(1 + (4 / mu^2 + 3 C^2 + Gamma mu T + D) / ((2 + 2 / T)(C^2 + D))), with T = tau R, and with
    Gamma / eta and eta mu held.
    """
    return _paper(settings, facts, 4 / facts.slope**2)


def paper_corrected(settings: Dpsgd, facts: Facts) -> float:
    """Returns ALI's tau without the slip in its induction."""
    return _paper(settings, facts, 0.0)


def _paper(settings: Dpsgd, facts: Facts, first: float) -> float:
    square = facts.clipping_norm**2
    noise = noise_power(settings, facts)
    steps = facts.tau * settings.rounds
    above = first + 3 * square + facts.loss_gap * facts.slope * steps + noise
    return math.sqrt(1 + above / ((2 + 2 / steps) * (square + noise)))


def local_sgd(settings: Dpsgd, facts: Facts) -> float:
    """Returns the root of a / (eta R tau^2) = 2 L eta^2 (zeta^2 (4 tau - 3) / 6 + (V + D) / 2).

    It is cut to [1, most_local_steps]. a: `prior_distance` squared. V <= C^2 / B. zeta^2, how much
    clients differ, follows from the spread of their released weights less what noise and sampling put
    there.
    """
    noisy = facts.clipping_norm**2 / settings.expected_lot + noise_power(settings, facts)
    rate = settings.learning_rate
    smoothness = facts.slope
    chance = noisy * (1 - 1 / facts.clients) / facts.tau
    differing = max(0.0, facts.spread / (rate * facts.tau) ** 2 - chance)
    gain = settings.prior_distance**2 / (rate * settings.rounds)

    def excess(tau: float) -> float:
        drift = differing * (4 * tau - 3) / 6 + noisy / 2
        return gain / tau**2 - 2 * smoothness * rate**2 * drift

    if excess(1.0) <= 0:
        return 1.0
    most = float(settings.most_local_steps)
    return most if excess(most) >= 0 else brentq(excess, 1.0, most)


# the rules that look at the loss on public images
PROBING = {"paper": paper, "paper_corrected": paper_corrected, "local_sgd": local_sgd}


def measured(
    weights: list[np.ndarray], losses: list[float], gradients: list[np.ndarray]
) -> dict[str, float]:
    """Returns {"slope", "loss_gap", "spread"}, or nothing where one of them is not finite.

    Args:
        weights: the clients' released weights and, last, their mean, each float [d].
        losses: of each on public images.
        gradients: of those losses, each float [d].
    """
    *client_weights, mean = weights
    *client_gradients, mean_gradient = gradients
    moves = [float(np.linalg.norm(array - mean)) for array in client_weights]
    bends = [float(np.linalg.norm(array - mean_gradient)) for array in client_gradients]
    slopes = [bend / (move + 1e-6) for bend, move in zip(bends, moves)]
    gaps = [loss - losses[-1] for loss in losses[:-1]]
    facts = {
        "slope": float(np.mean(slopes)),
        "loss_gap": abs(float(np.mean(gaps))),
        "spread": float(np.mean(np.square(moves))),
    }
    return facts if np.isfinite(list(facts.values())).all() else {}
