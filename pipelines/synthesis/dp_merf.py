"""`dp_merf`: a generator trained to match noisy class-wise means of random Fourier features (DP-MERF, AISTATS 2021).

Released, once: per class, the sum of phi(x) and alpha times the count, for phi(x) = sqrt(2 / d) [cos Wx ; sin Wx] of
norm 1 and a public W. A record adds one vector of L2 norm sqrt(1 + alpha^2): the sensitivity, when one record is added
or removed (at most 2 when one is replaced, for alpha <= 1, which is not claimed). Accounted in `plan`; released in
`fit`. The authors release a mean over a number of records that they take for public; here the sum and the noisy counts
leave, and no number is. Training the generator on the release is post-processing.
"""

import math

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from models.generator import NormedGenerator
from pipelines.config.generators import DpMerf
from pipelines.datasets.labelled_images import Images, synthetic
from pipelines.privacy.discrete_gaussian import Budget, on_lattice, release
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.synthesis import dp_moments
from pipelines.synthesis.base import HERE, Plan, Space, Where, lattice, stated
from pipelines.training.tensors import state_of, with_state

KNOWN_FAILURES = (
    "blurred and of little variety within a class: a mean embedding says little about its spread"
)
VERSION = 1  # of the mechanism, in the ledger: raise it when the same parameters would release something else
IDENTITY = Identity(
    consequences=frozenset(
        {
            "d",
            "labels",
            "lattice_steps_per_unit",
            "noise",
            "released_numbers",
            "sensitivity",
            "sigma",
        }
    )
)
FREQUENCIES = 20_211  # seed of W, a public constant
KEEP = 2.0  # a class is kept where its noisy count exceeds so many noise deviations
CHUNK = 500  # records whose features are held at once
PUBLIC = ("shape", "classes", "cnn", "histogram")  # entries of a state that are not weights


def plan(settings: DpMerf, budget: Budget, space: Space) -> Plan:
    """The noise of the one release. No private record is read."""
    draws = space.classes * (_features(settings) + 1)
    sensitivity = math.hypot(1.0, settings.count_weight)
    sigma = sensitivity / budget.mu if budget.private else 0.0
    details = {
        "sensitivity": sensitivity,
        "sigma": sigma,
        "d": _features(settings),
        "released_numbers": draws,
        "lattice_steps_per_unit": lattice(budget, sigma=sigma or 1.0, draws=draws),
        "settings": settings.model_dump(),
        "labels": "noisy histogram, part of the release",
    }
    statement = stated(
        "dp_merf (one Gaussian release of class-wise mean embeddings)", budget, details
    )
    line = (
        f"dp_merf: 1 release of {draws} numbers, noise {sigma:.3g} at sensitivity {sensitivity:.3g}"
    )
    return Plan(settings, space, statement, lines=(line,))


def fit(
    shard: Images, plan: Plan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Makes the release and trains the generator on it."""
    settings, space, details = plan.settings, plan.space, plan.statement.details
    scale, sigma = details["lattice_steps_per_unit"], details["sigma"]
    noisy = release(
        embedding_sum(shard, settings, space, scale), sigma=sigma, scale=scale, noise=noise
    )
    counts = noisy[:, -1] / settings.count_weight
    histogram = dp_moments.keep_classes(counts, sigma / settings.count_weight, KEEP)
    means = noisy[:, :-1] / np.maximum(counts, 1.0)[:, None]
    network = _network(space, settings.network, seed)
    _match(network, means, np.flatnonzero(histogram), settings, space, seed)
    facts = {
        "shape": np.array(space.shape),
        "classes": np.array(space.classes),
        "histogram": histogram,
    }
    return {**state_of(network), **facts, "cnn": np.array(int(settings.network == "cnn"))}


def sample(state: dict[str, np.ndarray], count: int, seed: int) -> Images:
    """`count` images; labels from the noisy histogram, latents standard normal."""
    space = Space(*(int(side) for side in state["shape"]), int(state["classes"]))
    network = _network(space, "cnn" if state["cnn"] else "mlp", seed=0)
    with_state(network, {name: array for name, array in state.items() if name not in PUBLIC}).eval()
    labels = np.random.default_rng(seed).choice(space.classes, size=count, p=state["histogram"])
    z = torch.randn(count, network.LATENT, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        parts = [
            network(*part) for part in zip(z.split(1000), torch.from_numpy(labels).split(1000))
        ]
    return synthetic(torch.cat(parts).permute(0, 2, 3, 1).numpy(), labels)


def frequencies(settings: DpMerf, space: Space) -> np.ndarray:
    """W [d / 2, H W C], normal with variance 1 / l^2; public, and the same for every client."""
    shape = (_features(settings) // 2, math.prod(space.shape))
    return np.random.default_rng(FREQUENCIES).standard_normal(shape) / math.sqrt(
        settings.length_scale
    )


def features(pixels: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """phi [n, d], each row of norm 1 to a float's last bits."""
    angles = pixels.reshape(len(pixels), -1).astype(np.float64) @ directions.T
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / math.sqrt(len(directions))


def embedding_sum(shard: Images, settings: DpMerf, space: Space, scale: int) -> np.ndarray:
    """int64 [K, d + 1]: per class the sum of phi and of alpha, in lattice steps."""
    directions = frequencies(settings, space)
    total = np.zeros((space.classes, _features(settings) + 1), np.int64)
    for start in range(0, len(shard), CHUNK):
        part = shard[start : start + CHUNK]
        phi = features(part.pixels, directions)
        records = np.concatenate([phi, np.full((len(phi), 1), settings.count_weight)], axis=1)
        np.add.at(total, part.labels, on_lattice(records, scale))
    return total


def _match(
    network: nn.Module,
    means: np.ndarray,
    kept: np.ndarray,
    settings: DpMerf,
    space: Space,
    seed: int,
) -> None:
    """Adam on the sum over kept classes of |m_c - mean phi(G(z, c))|^2, each class with an equal part of the batch."""
    stream = torch.Generator().manual_seed(seed)
    directions = torch.from_numpy(frequencies(settings, space)).float()
    target = torch.from_numpy(means[kept]).float()
    position = torch.arange(max(settings.batch, 2 * len(kept))) % len(kept)
    averages = torch.eye(len(kept))[position].T / torch.bincount(position)[:, None]
    labels = torch.from_numpy(kept)[position]
    optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, max(1, settings.steps // 5), gamma=0.9)
    for _ in tqdm(range(settings.steps), desc="dp_merf", disable=None, mininterval=1):
        z = torch.randn(len(labels), network.LATENT, generator=stream)
        angles = network(z, labels).permute(0, 2, 3, 1).flatten(1) @ directions.T
        phi = torch.cat([angles.cos(), angles.sin()], dim=1) / math.sqrt(len(directions))
        loss = (target - averages @ phi).square().sum()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        schedule.step()


def _network(space: Space, name: str, seed: int) -> NormedGenerator:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NormedGenerator(shape=space.shape, classes=space.classes, network=name)


def _features(settings: DpMerf) -> int:
    """d, even: cosines and sines come in pairs."""
    return settings.features - settings.features % 2
