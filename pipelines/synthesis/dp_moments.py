"""`dp_moments`: a Gaussian per class, from two noisy releases of low-frequency DCT moments. Two CPU-seconds.

Release 1: per class, the sum of clipped coefficients u / C and the count, weighted to unit norm together.
Release 2: per class, the sum of v v^T for residuals v = clip(u - m_y) / C2 around the released means m.
Each is a sum over records of a vector of L2 norm at most 1, so its sensitivity is 1 when one record is added or
removed (2 when one is replaced, which is not claimed). mu^2 is split by `first_share`; the adaptive composition of
Gaussian releases is exact, for the split is fixed beforehand and release 2 looks at release 1 only.
Everything after the two releases is post-processing. Accounted in `plan`; released in `fit`.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.fft import dctn, idctn

from pipelines.config.generators import DpMoments
from pipelines.datasets.labelled_images import Images, synthetic
from pipelines.privacy.discrete_gaussian import Budget, on_lattice, release
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.synthesis.base import HERE, Plan, Space, Where, lattice, stated

KNOWN_FAILURES = (
    "one Gaussian per class: blurred, unimodal; rare classes may be lost below the noise"
)
VERSION = 1  # of the mechanism, in the ledger: raise it when the same parameters would release something else
IDENTITY = Identity(
    consequences=frozenset(
        {
            "coefficients",
            "hyperparameters",
            "labels",
            "lattice_steps_per_unit",
            "noise",
            "released_numbers",
            "sensitivity",
            "sigma",
        }
    ),
    free=frozenset({"settings.low_epsilon"}),  # the plan's settings hold what follows from it
    neutral={"settings.inflation": 1.0, "settings.contrast": 1.0},
)
KEEP = 1.5  # a class is kept where its noisy count exceeds so many noise deviations
LEAST_COUNT = 2.0


def plan(settings: DpMoments, budget: Budget, space: Space) -> Plan:
    """Splits the budget between the two releases. No private record is read."""
    low = settings.low_epsilon
    if low and budget.epsilon < low.below:
        overrides = low.model_dump(exclude={"below"})
        settings = settings.model_copy(update=overrides)
    p = len(_mask(settings, space))
    draws = space.classes * (p + 1) + space.classes * p * (p + 1) // 2
    mu1, mu2 = (
        budget.mu * math.sqrt(part) for part in (settings.first_share, 1 - settings.first_share)
    )
    sigma1, sigma2 = (1 / mu if budget.private else 0.0 for mu in (mu1, mu2))
    scale = lattice(budget, sigma=min(sigma1, sigma2), draws=draws)
    details = {
        "sensitivity": 1.0,
        "sigma": [sigma1, sigma2],
        "coefficients": p,
        "released_numbers": draws,
        "lattice_steps_per_unit": scale,
        "settings": settings.model_dump(exclude={"low_epsilon"}),
        "labels": "noisy histogram, part of release 1",
    }
    statement = stated(
        "dp_moments (two Gaussian releases of class-wise DCT moments)", budget, details
    )
    line = f"dp_moments: 2 releases of {draws} numbers, noise {sigma1:.3g} and {sigma2:.3g} at sensitivity 1"
    return Plan(settings, space, statement, lines=(line,))


def fit(
    shard: Images, plan: Plan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Makes the two releases and turns them into a mean and a covariance root per kept class. Done in seconds: a
    killed run has nothing worth keeping."""
    settings, space, details = plan.settings, plan.space, plan.statement.details
    sigma1, sigma2 = details["sigma"]
    scale = details["lattice_steps_per_unit"]
    u = encode(shard.pixels, settings, space)
    first = release(
        first_sum(u, shard.labels, settings, space, scale), sigma=sigma1, scale=scale, noise=noise
    )
    means, counts = estimate_means(first, settings)
    second = release(
        second_sum(u, shard.labels, means, settings, scale), sigma=sigma2, scale=scale, noise=noise
    )
    histogram = keep_classes(counts, sigma1 / _weights(settings)[1])
    roots = estimate_roots(second, counts, histogram > 0, sigma2, settings)
    public = {name: np.array(getattr(settings, name)) for name in ("centre", "cutoff", "contrast")}
    public["shape"] = np.array(space.shape)
    count = np.array(max(counts.sum(), LEAST_COUNT))  # of records, with noise
    return {"means": means, "roots": roots, "histogram": histogram, "count": count, **public}


def sample(state: dict[str, np.ndarray], count: int, seed: int) -> Images:
    """`count` images: labels from the noisy histogram, coefficients from their class's Gaussian."""
    rng = np.random.default_rng(seed)
    height, width, channels = (int(side) for side in state["shape"])
    space = Space(height, width, channels, len(state["histogram"]))
    labels = rng.choice(space.classes, size=count, p=state["histogram"])
    latent = rng.standard_normal((count, state["means"].shape[1]))
    u = state["means"][labels] + np.einsum("npq,nq->np", state["roots"][labels], latent)
    pixels = decode(u, float(state["centre"]), int(state["cutoff"]), space)
    return synthetic(0.5 + float(state["contrast"]) * (pixels - 0.5), labels)


def encode(pixels: np.ndarray, settings: DpMoments, space: Space) -> np.ndarray:
    """[n, p]: low-pass orthonormal DCT of the centred images, clipped to L2 norm `clip`."""
    coefficients = dctn(pixels.astype(np.float64) - settings.centre, axes=(1, 2), norm="ortho")
    return clipped(
        coefficients.reshape(len(pixels), math.prod(space.shape))[:, _mask(settings, space)],
        settings.clip,
    )


def decode(u: np.ndarray, centre: float, cutoff: int, space: Space) -> np.ndarray:
    """[n, H, W, C] in [0, 1]: the inverse of `encode` on what it keeps."""
    coefficients = np.zeros((len(u), math.prod(space.shape)))
    coefficients[:, _low_frequencies(cutoff, space)] = u
    return np.clip(
        idctn(coefficients.reshape(-1, *space.shape), axes=(1, 2), norm="ortho") + centre, 0, 1
    )


def clipped(vectors: np.ndarray, norm: float) -> np.ndarray:
    """Rows scaled down to L2 norm `norm` where they exceed it."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * np.minimum(1.0, norm / np.maximum(lengths, 1e-12))


def first_sum(
    u: np.ndarray, labels: np.ndarray, settings: DpMoments, space: Space, scale: int
) -> np.ndarray:
    """int64 [K, p + 1]: per class the sum of w0 u / C and w1 times the count, in lattice steps."""
    w0, w1 = _weights(settings)
    records = np.concatenate([w0 * u / settings.clip, np.full((len(u), 1), w1)], axis=1)
    return _sum_by_class(on_lattice(records, scale), labels, space.classes)


def second_sum(
    u: np.ndarray, labels: np.ndarray, means: np.ndarray, settings: DpMoments, scale: int
) -> np.ndarray:
    """int64 [K, p (p + 1) / 2]: per class the sum of vech(v v^T), off-diagonals times sqrt 2, in lattice steps."""
    v = clipped(u - means[labels], settings.residual_clip) / settings.residual_clip
    upper = _vech(v.shape[1])
    total = np.zeros((len(means), len(upper.row)), np.int64)
    for label in range(len(means)):
        for chunk in np.array_split(v[labels == label], 1 + len(v) // 500):
            total[label] += on_lattice(
                chunk[:, upper.row] * chunk[:, upper.column] * upper.weight, scale
            ).sum(0)
    return total


def estimate_means(first: np.ndarray, settings: DpMoments) -> tuple[np.ndarray, np.ndarray]:
    """(means [K, p], counts [K]) from release 1."""
    w0, w1 = _weights(settings)
    counts = first[:, -1] / w1
    return settings.clip * first[:, :-1] / (w0 * np.maximum(counts, LEAST_COUNT)[:, None]), counts


def keep_classes(counts: np.ndarray, deviation: float, threshold: float = KEEP) -> np.ndarray:
    """The label histogram for sampling: noisy counts of the classes that stand out of the noise, normalised."""
    kept = np.where(counts > threshold * deviation, counts, 0.0)
    kept = kept if kept.any() else np.eye(len(counts))[np.argmax(counts)]
    return kept / kept.sum()


def estimate_roots(
    second: np.ndarray, counts: np.ndarray, kept: np.ndarray, sigma: float, settings: DpMoments
) -> np.ndarray:
    """[K, p, p] roots L of the covariances M = L L^T: shrunk towards the pooled one, eigenvalues debiased."""
    size = np.maximum(counts, LEAST_COUNT)
    moments = settings.residual_clip**2 * np.stack([_symmetric(row) for row in second])
    noise = sigma * settings.residual_clip**2  # deviation on the diagonal; / sqrt 2 off it
    covariances = moments / size[:, None, None]
    total = size[kept].sum()
    pooled = moments[kept].sum(0) / total
    roots = np.zeros_like(moments)
    for label in np.flatnonzero(kept):
        weight = _empirical_bayes(covariances[label] - pooled, noise / size[label])
        own, rest = weight / size[label], (1 - weight) / total
        # own + (1 - weight) pooled: this class's noise enters both terms, the other classes' only the pool
        deviation = noise / math.sqrt(2) * math.sqrt(own**2 + 2 * own * rest + kept.sum() * rest**2)
        mixed = weight * covariances[label] + (1 - weight) * pooled
        roots[label] = _debiased_root(mixed, deviation, settings.inflation)
    return roots


def _empirical_bayes(difference: np.ndarray, noise: float) -> float:
    """Weight of a class's own covariance: the share of its distance to the pool that is not noise."""
    distance = np.sum(difference**2)
    return max(0.0, 1 - len(difference) ** 2 / 2 * noise**2 / distance) if distance > 0 else 0.0


def _debiased_root(matrix: np.ndarray, deviation: float, inflation: float) -> np.ndarray:
    """Eigenvalues below the noise edge 2 sd sqrt p vanish, those above shrink (spiked Wigner)."""
    values, vectors = np.linalg.eigh(matrix)
    edge = 2 * deviation * math.sqrt(len(values))
    signal = np.where(
        values > edge, (values + np.sqrt(np.maximum(values**2 - edge**2, 0))) / 2, 0.0
    )
    return vectors * np.sqrt(inflation * signal)


def _sum_by_class(rows: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    total = np.zeros((classes, rows.shape[1]), np.int64)
    np.add.at(total, labels, rows)
    return total


def _weights(settings: DpMoments) -> tuple[float, float]:
    """(w0, w1) with w0^2 + w1^2 = 1."""
    norm = math.hypot(1.0, settings.count_weight)
    return 1 / norm, settings.count_weight / norm


def _mask(settings: DpMoments, space: Space) -> np.ndarray:
    return _low_frequencies(settings.cutoff, space)


def _low_frequencies(cutoff: int, space: Space) -> np.ndarray:
    """Flat positions [p] of the coefficients with i + j < cutoff, all channels."""
    i, j, _ = np.indices(space.shape)
    return np.flatnonzero((i + j < cutoff).ravel())


class _Vech(NamedTuple):
    row: np.ndarray
    column: np.ndarray
    weight: np.ndarray


def _vech(p: int) -> _Vech:
    """Upper triangle; off-diagonals weigh sqrt 2, so that |vech(v v^T)| = |v|^2."""
    row, column = np.triu_indices(p)
    return _Vech(row, column, np.where(row == column, 1.0, math.sqrt(2)))


def _symmetric(values: np.ndarray) -> np.ndarray:
    """[p, p] from its weighted upper triangle."""
    p = (math.isqrt(8 * len(values) + 1) - 1) // 2
    upper = _vech(p)
    matrix = np.zeros((p, p))
    matrix[upper.row, upper.column] = matrix[upper.column, upper.row] = values / upper.weight
    return matrix
