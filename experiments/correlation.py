"""Does a client gain the more, the worse it does alone? Rank correlation, and what chance alone would show.

The gain is b - a, ours less local; held against a itself it correlates negatively though a and b had nothing to do with
each other, for a stands on both sides. Hence the reference: the same correlation with each b dealt to another cell.
"""

import numpy as np
from scipy.stats import rankdata, spearmanr

PERMUTATIONS = 10_000


def gain_against_local(local: list[float], ours: list[float], *, seed: int = 0) -> dict:
    """{"n", "spearman", "p", "spearman_permuted": the mean under permutation, "p_permuted": the share of permutations
    that correlate as negatively or more}. p is scipy's, two-sided, against no correlation at all: the wrong null here,
    shown because the paper's is of that kind. None where fewer than three cells, or nothing varies."""
    a, b = np.asarray(local, float), np.asarray(ours, float)
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b - a) == 0:
        return {"n": len(a), **dict.fromkeys(("spearman", "p", "spearman_permuted", "p_permuted"))}
    rho, p = spearmanr(a, b - a)
    dealt = np.random.default_rng(seed).permuted(np.tile(b, (PERMUTATIONS, 1)), axis=1)
    chance = _correlations(rankdata(a), rankdata(dealt - a, axis=1))
    as_low = np.count_nonzero(chance <= rho + 1e-12)  # equal ones differ in the last bits
    return {
        "n": len(a),
        "spearman": float(rho),
        "p": float(p),
        "spearman_permuted": float(np.mean(chance)),
        "p_permuted": (1 + as_low) / (1 + PERMUTATIONS),
    }


def _correlations(ranks: np.ndarray, each: np.ndarray) -> np.ndarray:
    """Pearson's of `ranks` [n] with every row of [m, n]; 0 where a row does not vary."""
    x, y = ranks - ranks.mean(), each - each.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.sum(x**2) * np.sum(y**2, axis=1))
    return np.divide(y @ x, spread, out=np.zeros(len(y)), where=spread > 0)
