"""Audits with one run: many canaries, each put in or left out by a fair coin of its own.

Steinke, Nasr and Jagielski 2023, Theorem 5.2: whoever guesses r of m coins from an (epsilon,
delta)-DP output is right v or more times with probability at most
P[W >= v] + 2 m delta max_i P[v > W >= v - i] / i, where W is binomial with r trials of
e^epsilon / (1 + e^epsilon). The coins must be independent and fair, and r fixed beforehand.

>>> bound = epsilon_lower_bound(canaries=1000, guesses=100, correct=90, delta=1e-5)
>>> round(bound, 2)
1.63
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from pipelines.privacy.audits.verdict import Verdict, of_epsilon

CONFIDENCE = 0.95
# epsilon; no number of canaries that fits a machine reaches it
LARGEST = 50.0


def audit(
    scores: np.ndarray,
    included: np.ndarray,
    *,
    guesses: int,
    mu_claimed: float,
    delta: float,
    confidence: float = CONFIDENCE,
) -> Verdict:
    """Audits a claim by guesses of the coins.

    Args:
        scores: float [m], higher for canaries that seem to be in.
        included: bool [m], the coins.
        guesses: How many coins are guessed.
        mu_claimed: The claim.
        delta: The delta of the claim in epsilon.
        confidence: The confidence of the bound.
    """
    counts = {
        "canaries": len(scores),
        "guesses": guesses,
        "correct": correct_guesses(scores, included, guesses),
    }
    lower = epsilon_lower_bound(**counts, delta=delta, confidence=confidence)
    evidence = {**counts, "confidence": confidence}
    return of_epsilon(mu_claimed=mu_claimed, epsilon_lower=lower, delta=delta, evidence=evidence)


def correct_guesses(scores: np.ndarray, included: np.ndarray, guesses: int) -> int:
    """Returns how many guesses are right.

    Args:
        scores: float [m]. The highest guesses / 2 are called in and the lowest out.
        included: bool [m], the coins.
        guesses: How many coins are guessed; the rest abstain.

    >>> correct_guesses(np.array([3.0, 1.0, 2.0]), np.array([True, False, True]), guesses=2)
    2
    """
    order = np.argsort(scores, kind="stable")
    half = guesses // 2
    return int(included[order[len(order) - half :]].sum() + (~included[order[:half]]).sum())


def epsilon_lower_bound(
    *, canaries: int, guesses: int, correct: int, delta: float, confidence: float = CONFIDENCE
) -> float:
    """Returns the least epsilon that so many correct guesses leave possible.

    It is 0 when chance alone explains them.

    Args:
        canaries: The number of canaries.
        guesses: How many coins were guessed.
        correct: How many guesses were right.
        delta: The delta of the bound.
        confidence: The confidence of the bound.
    """

    def excess(epsilon: float) -> float:
        probability = p_value(
            canaries=canaries, guesses=guesses, correct=correct, epsilon=epsilon, delta=delta
        )
        return probability - (1 - confidence)

    return 0.0 if excess(0.0) >= 0 else brentq(excess, 0.0, LARGEST)


def p_value(*, canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Returns the largest probability of so many right guesses or more under (epsilon, delta)-DP.

    Args:
        canaries: The number of canaries.
        guesses: How many coins were guessed.
        correct: How many guesses were right.
        epsilon, delta: The guarantee.
    """
    right = 1 / (1 + math.exp(-epsilon))
    # P[correct > W >= correct - i]
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, right))
    steepest = np.max(below / np.arange(1, correct + 1), initial=0.0)
    return min(1.0, float(binom.sf(correct - 1, guesses, right) + 2 * canaries * delta * steepest))
