"""The audit that needs one run: many canaries, each put in or left out by a fair coin of its own.

Steinke, Nasr and Jagielski 2023, Theorem 5.2: whoever guesses r of m coins from an (epsilon, delta)-DP output is
right v or more times with probability at most P[W >= v] + 2 m delta max_i P[v > W >= v - i] / i, where W is binomial
with r trials of e^epsilon / (1 + e^epsilon). The coins must be independent and fair, and r fixed beforehand.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from pipelines.privacy.audits.verdict import Verdict, of_epsilon

CONFIDENCE = 0.95
LARGEST = 50.0  # epsilon; no number of canaries that fits a machine reaches it


def audit(
    scores: np.ndarray,
    included: np.ndarray,
    *,
    guesses: int,
    mu_claimed: float,
    delta: float,
    confidence: float = CONFIDENCE,
) -> Verdict:
    """`scores` float [m], higher for canaries that seem to be in; `included` bool [m], the coins."""
    counts = {
        "canaries": len(scores),
        "guesses": guesses,
        "correct": correct_guesses(scores, included, guesses),
    }
    lower = epsilon_lower_bound(**counts, delta=delta, confidence=confidence)
    evidence = {**counts, "confidence": confidence}
    return of_epsilon(mu_claimed=mu_claimed, epsilon_lower=lower, delta=delta, evidence=evidence)


def correct_guesses(scores: np.ndarray, included: np.ndarray, guesses: int) -> int:
    """How many are right when the highest guesses / 2 scores are called in and the lowest out; the rest abstain."""
    order, half = np.argsort(scores, kind="stable"), guesses // 2
    return int(included[order[len(order) - half :]].sum() + (~included[order[:half]]).sum())


def epsilon_lower_bound(
    *, canaries: int, guesses: int, correct: int, delta: float, confidence: float = CONFIDENCE
) -> float:
    """The least epsilon that so many correct guesses leave possible; 0 when chance alone explains them."""

    def excess(epsilon: float) -> float:
        found = p_value(
            canaries=canaries, guesses=guesses, correct=correct, epsilon=epsilon, delta=delta
        )
        return found - (1 - confidence)

    return 0.0 if excess(0.0) >= 0 else brentq(excess, 0.0, LARGEST)


def p_value(*, canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """The most probable that `correct` or more right guesses can be under (epsilon, delta)-DP."""
    right = 1 / (1 + math.exp(-epsilon))
    below = np.cumsum(
        binom.pmf(np.arange(correct - 1, -1, -1), guesses, right)
    )  # P[correct > W >= correct - i]
    steepest = np.max(below / np.arange(1, correct + 1), initial=0.0)
    return min(1.0, float(binom.sf(correct - 1, guesses, right) + 2 * canaries * delta * steepest))
