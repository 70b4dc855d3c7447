"""Membership inference by nearest neighbour: are the training records closer to the synthetic images than others?

Any threshold on any score of a mu-GDP release has (FPR, TPR) below the curve of two unit Gaussians at distance mu, for
each record and hence, the curve being concave, for the average over records: AUC <= Phi(mu / sqrt 2). The records are
members by a fair coin each, so the one-run theorem turns the same distances into a bound on epsilon.
"""

import math

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.neighbors import NearestNeighbors

from pipelines.privacy.audits import one_run
from pipelines.privacy.audits.verdict import Verdict, of_epsilon

LOW_FPR = (0.01, 0.1)
DEVIATIONS = 4.0  # of an AUC at its limit; more than that above the limit is a finding


def audit(
    distances: np.ndarray, members: np.ndarray, *, guesses: int, mu_claimed: float, delta: float
) -> Verdict:
    """`distances` float [m] to the nearest synthetic image; `members` bool [m], the coins."""
    facts, limit = attack(distances, members), largest_auc(mu_claimed)
    slack = DEVIATIONS * auc_deviation(
        limit, members=int(members.sum()), others=int((~members).sum())
    )
    found = one_run.audit(-distances, members, guesses=guesses, mu_claimed=mu_claimed, delta=delta)
    return of_epsilon(
        mu_claimed=mu_claimed,
        epsilon_lower=found.epsilon_lower,
        delta=delta,
        evidence={**facts, "auc_limit": limit, **found.evidence},
        refuted=facts["auc"] > limit + slack,
    )


def nearest(records: np.ndarray, synthetic: np.ndarray) -> np.ndarray:
    """float [m]: L2 distance of each record [m, ...] to the nearest of the synthetic images [n, ...]."""
    index = NearestNeighbors(n_neighbors=1).fit(_flat(synthetic))
    return index.kneighbors(_flat(records))[0][:, 0]


def attack(distances: np.ndarray, members: np.ndarray) -> dict[str, float]:
    """AUC and true positive rates at low false positive rates of "the closer, the likelier a member"."""
    fpr, tpr, _ = roc_curve(members, -distances, drop_intermediate=False)
    low = {f"tpr_at_fpr_{limit:g}": float(tpr[fpr <= limit].max()) for limit in LOW_FPR}
    return {"auc": float(roc_auc_score(members, -distances)), **low}


def largest_auc(mu: float) -> float:
    """Of any attack on a mu-GDP release."""
    return float(norm.cdf(mu / math.sqrt(2)))


def auc_deviation(auc: float, *, members: int, others: int) -> float:
    """Standard deviation of an estimated AUC whose true value is `auc` (Hanley and McNeil 1982)."""
    two_members, two_others = auc / (2 - auc) - auc**2, 2 * auc**2 / (1 + auc) - auc**2
    spread = auc * (1 - auc) + (members - 1) * two_members + (others - 1) * two_others
    return math.sqrt(max(0.0, spread) / (members * others))


def _flat(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1).astype(np.float64)
