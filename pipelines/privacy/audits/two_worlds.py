"""Audits in two worlds: how well do scores of a mechanism's outputs tell two data sets apart?

The data sets are neighbours. `absent` and `present` are float [n], independent runs in the two
worlds; a higher score speaks for `present`. The threshold is chosen on the first half of the runs.
On the second half, Clopper-Pearson bounds the false positive and the false negative rate at
alpha / 2 each, so that both hold together with probability 1 - alpha.

mu:       Phi^-1(1 - FPR) - Phi^-1(FNR) <= mu for every attack on a mu-GDP mechanism (Dong, Roth
          and Su, eq. 6).
epsilon:  1 - FNR <= e^epsilon FPR + delta, and the same with the two rates exchanged; assumes
          nothing.

>>> rng = np.random.default_rng(0)
>>> absent, present = rng.normal(0, 1, 4000), rng.normal(1, 1, 4000)
>>> bool(0.7 < mu_lower_bound(absent, present) <= 1.0)
True
"""

from collections.abc import Callable

import numpy as np
from scipy.stats import beta, norm

from pipelines.privacy.audits.verdict import Verdict, of_mu

CONFIDENCE = 0.95
# thresholds tried, at quantiles of the first half
CANDIDATES = 400
# confidence while choosing: far in the tails the best of many is mere luck
CAUTIOUS = 1 - 1e-9

Rates = tuple[np.ndarray, np.ndarray]


def audit(
    absent: np.ndarray,
    present: np.ndarray,
    *,
    mu_claimed: float,
    delta: float,
    confidence: float = CONFIDENCE,
) -> Verdict:
    """Computes both bounds on one mechanism's scores; the one on mu decides.

    Args:
        absent, present: float [n], scores of independent runs in the two worlds.
        mu_claimed: The claim.
        delta: The delta of the claim in epsilon.
        confidence: The confidence of each bound.
    """
    free = epsilon_lower_bound(absent, present, delta=delta, confidence=confidence)
    lower = mu_lower_bound(absent, present, confidence=confidence)
    evidence = {
        "epsilon_lower_assumption_free": free,
        "runs_per_world": len(absent),
        "confidence": confidence,
    }
    return of_mu(mu_claimed=mu_claimed, mu_lower=lower, delta=delta, evidence=evidence)


def mu_lower_bound(
    absent: np.ndarray, present: np.ndarray, *, confidence: float = CONFIDENCE
) -> float:
    """Returns a bound that is at most the true mu of a Gaussian mechanism. It is never negative.

    Args:
        absent, present: float [n], scores of independent runs in the two worlds.
        confidence: The least probability with which the bound holds.
    """

    def mu(fpr: np.ndarray, fnr: np.ndarray) -> np.ndarray:
        return norm.isf(fpr) - norm.ppf(fnr)

    return _split_bound(absent, present, mu, confidence)


def epsilon_lower_bound(
    absent: np.ndarray, present: np.ndarray, *, delta: float, confidence: float = CONFIDENCE
) -> float:
    """Returns a bound that is at most the epsilon of any mechanism. It is never negative.

    Args:
        absent, present: float [n], scores of independent runs in the two worlds.
        delta: The delta of the bound.
        confidence: The least probability with which the bound holds.
    """

    def one_sided(rate: np.ndarray, other_rate: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(1 - rate - delta, 1e-300) / other_rate)

    def epsilon(fpr: np.ndarray, fnr: np.ndarray) -> np.ndarray:
        return np.maximum(one_sided(fnr, fpr), one_sided(fpr, fnr))

    return _split_bound(absent, present, epsilon, confidence)


def error_bounds(
    absent: np.ndarray, present: np.ndarray, thresholds: np.ndarray, *, confidence: float
) -> Rates:
    """Returns upper bounds on (FPR, FNR) of `score > threshold`.

    Args:
        absent, present: float [n], scores of independent runs in the two worlds.
        thresholds: float [t].
        confidence: Each bound holds at (1 - confidence) / 2.

    Returns:
        Two arrays [t].
    """
    false_positives = len(absent) - np.searchsorted(np.sort(absent), thresholds, side="right")
    false_negatives = np.searchsorted(np.sort(present), thresholds, side="right")
    tail = (1 - confidence) / 2
    fpr = _clopper_pearson(false_positives, len(absent), tail)
    fnr = _clopper_pearson(false_negatives, len(present), tail)
    return fpr, fnr


def _split_bound(
    absent: np.ndarray, present: np.ndarray, bound: Callable[..., np.ndarray], confidence: float
) -> float:
    """Returns a bound at the threshold that the first half prefers, measured on the second."""
    first = (absent[::2], present[::2])
    second = (absent[1::2], present[1::2])
    thresholds = np.quantile(np.concatenate(first), np.linspace(0, 1, CANDIDATES), method="lower")
    chosen = thresholds[np.argmax(bound(*error_bounds(*first, thresholds, confidence=CAUTIOUS)))]
    (value,) = bound(*error_bounds(*second, np.array([chosen]), confidence=confidence))
    return max(0.0, float(value))


def _clopper_pearson(events: np.ndarray, trials: int, tail: float) -> np.ndarray:
    """Returns the largest rate at which `events` or fewer of `trials` has probability `tail`."""
    upper = beta.isf(tail, events + 1, np.maximum(trials - events, 1))
    return np.where(events < trials, upper, 1.0)
