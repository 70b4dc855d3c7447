"""The two-worlds audit: how well can scores of a mechanism's outputs tell two neighbouring data sets apart?

`absent` and `present` are float [n], independent runs in the two worlds; a higher score speaks for `present`. The
threshold is chosen on the first half of the runs. On the second half, Clopper-Pearson bounds the false positive and
the false negative rate at alpha / 2 each, so that both hold together with probability 1 - alpha.

mu:       Phi^-1(1 - FPR) - Phi^-1(FNR) <= mu for every attack on a mu-GDP mechanism (Dong, Roth and Su, eq. 6).
epsilon:  1 - FNR <= e^epsilon FPR + delta, and the same with the two rates exchanged; assumes nothing.
"""

from collections.abc import Callable

import numpy as np
from scipy.stats import beta, norm

from pipelines.privacy.audits.verdict import Verdict, of_mu

CONFIDENCE = 0.95
CANDIDATES = 400  # thresholds tried, at quantiles of the first half
CAUTIOUS = 1 - 1e-9  # confidence while choosing: far in the tails the best of many is mere luck

Rates = tuple[np.ndarray, np.ndarray]


def audit(
    absent: np.ndarray,
    present: np.ndarray,
    *,
    mu_claimed: float,
    delta: float,
    confidence: float = CONFIDENCE,
) -> Verdict:
    """Both bounds on one mechanism's scores; the mu one decides."""
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
    """At most the true mu of a Gaussian mechanism, with probability `confidence` or more. Never negative."""
    return _split_bound(absent, present, lambda fpr, fnr: norm.isf(fpr) - norm.ppf(fnr), confidence)


def epsilon_lower_bound(
    absent: np.ndarray, present: np.ndarray, *, delta: float, confidence: float = CONFIDENCE
) -> float:
    """At most the epsilon at `delta` of any mechanism, with probability `confidence` or more. Never negative."""

    def epsilon(fpr, fnr):
        one, other = (
            np.log(np.maximum(1 - a - delta, 1e-300) / b) for a, b in ((fnr, fpr), (fpr, fnr))
        )
        return np.maximum(one, other)

    return _split_bound(absent, present, epsilon, confidence)


def error_bounds(
    absent: np.ndarray, present: np.ndarray, thresholds: np.ndarray, *, confidence: float
) -> Rates:
    """Upper bounds on (FPR, FNR) of `score > threshold`, each at (1 - confidence) / 2; [t] each."""
    false_positives = len(absent) - np.searchsorted(np.sort(absent), thresholds, side="right")
    false_negatives = np.searchsorted(np.sort(present), thresholds, side="right")
    tail = (1 - confidence) / 2
    return _clopper_pearson(false_positives, len(absent), tail), _clopper_pearson(
        false_negatives, len(present), tail
    )


def _split_bound(
    absent: np.ndarray, present: np.ndarray, bound: Callable[..., np.ndarray], confidence: float
) -> float:
    """`bound` at the threshold that the first half prefers, measured on the second."""
    first, second = ([world[half::2] for world in (absent, present)] for half in (0, 1))
    thresholds = np.quantile(np.concatenate(first), np.linspace(0, 1, CANDIDATES), method="lower")
    chosen = thresholds[np.argmax(bound(*error_bounds(*first, thresholds, confidence=CAUTIOUS)))]
    (value,) = bound(*error_bounds(*second, np.array([chosen]), confidence=confidence))
    return max(0.0, float(value))


def _clopper_pearson(events: np.ndarray, trials: int, tail: float) -> np.ndarray:
    """The largest rate at which `events` or fewer of `trials` has probability `tail`."""
    return np.where(
        events < trials, beta.isf(tail, events + 1, np.maximum(trials - events, 1)), 1.0
    )
