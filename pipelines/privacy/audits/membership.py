"""Attacks by nearest neighbour: are training records closer to the synthetic images than others?

Any threshold on any score of a mu-GDP release has (FPR, TPR) below the curve of two unit Gaussians
at distance mu, for each record and hence, the curve being concave, for the average over records:
AUC <= Phi(mu / sqrt 2). The records are members by a fair coin each, so the one-run theorem turns
the same distances into a bound on epsilon.

>>> distances = nearest(np.zeros((2, 1, 1, 1)), np.full((3, 1, 1, 1), 0.5))
>>> distances
array([0.5, 0.5])
>>> round(largest_auc(mu=1.0), 3)
0.76
"""

import math

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.neighbors import NearestNeighbors

from pipelines.privacy.audits import one_run
from pipelines.privacy.audits.verdict import Verdict, of_epsilon

LOW_FPR = (0.01, 0.1)
# of an AUC at its limit; more than that above the limit is a finding
DEVIATIONS = 4.0


def audit(
    distances: np.ndarray, members: np.ndarray, *, guesses: int, mu_claimed: float, delta: float
) -> Verdict:
    """Audits a claim by the distances of records to synthetic images.

    Args:
        distances: float [m], of each record to the nearest synthetic image.
        members: bool [m], the coins.
        guesses: How many coins are guessed.
        mu_claimed: The claim.
        delta: The delta of the claim in epsilon.
    """
    facts = attack(distances, members)
    limit = largest_auc(mu_claimed)
    slack = DEVIATIONS * auc_deviation(
        limit, members=int(members.sum()), others=int((~members).sum())
    )
    coins = one_run.audit(-distances, members, guesses=guesses, mu_claimed=mu_claimed, delta=delta)
    return of_epsilon(
        mu_claimed=mu_claimed,
        epsilon_lower=coins.epsilon_lower,
        delta=delta,
        evidence={**facts, "auc_limit": limit, **coins.evidence},
        refuted=facts["auc"] > limit + slack,
    )


def nearest(records: np.ndarray, synthetic: np.ndarray) -> np.ndarray:
    """Returns the L2 distance [m] of each record [m, ...] to the nearest of the images [n, ...]."""
    index = NearestNeighbors(n_neighbors=1).fit(_flat(synthetic))
    return index.kneighbors(_flat(records))[0][:, 0]


def attack(distances: np.ndarray, members: np.ndarray) -> dict[str, float]:
    """Returns the AUC and true positive rates at low false positive rates.

    The attack says: the closer, the likelier a member.
    """
    fpr, tpr, _ = roc_curve(members, -distances, drop_intermediate=False)
    low = {f"tpr_at_fpr_{limit:g}": float(tpr[fpr <= limit].max()) for limit in LOW_FPR}
    return {"auc": float(roc_auc_score(members, -distances)), **low}


def largest_auc(mu: float) -> float:
    """Returns the largest AUC of any attack on a mu-GDP release."""
    return float(norm.cdf(mu / math.sqrt(2)))


def auc_deviation(auc: float, *, members: int, others: int) -> float:
    """Returns the standard deviation of an estimated AUC (Hanley and McNeil 1982).

    Args:
        auc: Its true value.
        members: The number of members.
        others: The number of other records.
    """
    two_members = auc / (2 - auc) - auc**2
    two_others = 2 * auc**2 / (1 + auc) - auc**2
    spread = auc * (1 - auc) + (members - 1) * two_members + (others - 1) * two_others
    return math.sqrt(max(0.0, spread) / (members * others))


def _flat(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1).astype(np.float64)
