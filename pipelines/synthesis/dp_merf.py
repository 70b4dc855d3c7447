"""Fits `dp_merf`: a generator trained to match noisy class-wise means of random Fourier features.

The method is DP-MERF (AISTATS 2021). Released, once: per class, the sum of phi(x) and alpha times
the count, for phi(x) = sqrt(2 / d) [cos Wx ; sin Wx] of norm 1 and a public W. A record adds one
vector of L2 norm sqrt(1 + alpha^2): the sensitivity, when one record is added or removed (at most 2
when one is replaced, for alpha <= 1, which is not claimed). Accounted in `plan`; released in `fit`.

The authors release a mean over a number of records that they take for public. Here the sum and the
noisy counts leave, and no number of records does. Training the generator on the release is
post-processing.
"""

import math

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from models.generator import NormedGenerator
from pipelines.config.generators import DpMerf
from pipelines.datasets.labelled_images import Images, synthetic
from pipelines.lattice import lattice
from pipelines.privacy.discrete_gaussian import Budget, on_lattice, release
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.synthesis.base import HERE, Plan, Space, Where, stated
from pipelines.synthesis.dp_moments_estimates import keep_classes
from pipelines.training.tensors import state_of, with_state

KNOWN_FAILURES = (
    "blurred and of little variety within a class: a mean embedding says little about its spread"
)
# of the mechanism, in the ledger: raise it when the same parameters would release something else
VERSION = 1
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
# seed of W, a public constant
FREQUENCIES = 20_211
# a class is selected where its noisy count exceeds so many noise deviations
KEEP = 2.0
# records whose features are held at once
CHUNK = 500
# images sampled at a time
AT_ONCE = 1000
# entries of a state that are not weights
PUBLIC = ("shape", "classes", "cnn", "histogram")


def plan(settings: DpMerf, budget: Budget, space: Space) -> Plan:
    """Plans the noise of the one release. No private record is read.

    Args:
        settings: The settings of `synthesis.dp_merf`.
        budget: The budget, which the release spends whole.
        space: What is public about the images.

    Raises:
        UserError: Delta is too small for the lattice of the noise.
    """
    draws = space.classes * (_features(settings) + 1)
    sensitivity = math.hypot(1.0, settings.count_weight)
    sigma = sensitivity / budget.mu if budget.private else 0.0
    details = {
        "sensitivity": sensitivity,
        "sigma": sigma,
        "d": _features(settings),
        "released_numbers": draws,
        "lattice_steps_per_unit": lattice(budget, sigmas=(sigma or 1.0,), draws=draws),
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
    """Makes the release and trains the generator on it.

    Args:
        shard: The client's private records.
        plan: The plan, from `plan`.
        noise: The noise source.
        seed: The seed of the generator's weights and of its latents.
        where: Not used.

    Returns:
        The state: the generator's weights, its shape and the noisy histogram [K].
    """
    settings = plan.settings
    space = plan.space
    scale = plan.statement.details["lattice_steps_per_unit"]
    sigma = plan.statement.details["sigma"]
    total = embedding_sum(shard, settings, space, scale)
    noisy = release(total, sigma=sigma, scale=scale, noise=noise)
    counts = noisy[:, -1] / settings.count_weight
    histogram = keep_classes(counts, sigma / settings.count_weight, KEEP)
    means = noisy[:, :-1] / np.maximum(counts, 1.0)[:, None]
    network = _network(space, settings.network, seed)
    _match(network, means, np.flatnonzero(histogram), settings, space, seed)
    return {
        **state_of(network),
        "shape": np.array(space.shape),
        "classes": np.array(space.classes),
        "histogram": histogram,
        "cnn": np.array(int(settings.network == "cnn")),
    }


def sample(state: dict[str, np.ndarray], count: int, seed: int) -> Images:
    """Draws images: labels from the noisy histogram, latents standard normal.

    Args:
        state: The state, from `fit`.
        count: How many images to draw.
        seed: The seed of the draw.
    """
    space = Space(*state["shape"].tolist(), int(state["classes"]))
    network = _network(space, "cnn" if state["cnn"] else "mlp", seed=0)
    with_state(network, {name: array for name, array in state.items() if name not in PUBLIC}).eval()
    labels = np.random.default_rng(seed).choice(space.classes, size=count, p=state["histogram"])
    z = torch.randn(count, network.LATENT, generator=torch.Generator().manual_seed(seed))
    batches = []
    with torch.no_grad():
        for latents, classes in zip(z.split(AT_ONCE), torch.from_numpy(labels).split(AT_ONCE)):
            batches.append(network(latents, classes))
    return synthetic(torch.cat(batches).permute(0, 2, 3, 1).numpy(), labels)


def frequencies(settings: DpMerf, space: Space) -> np.ndarray:
    """Draws W [d / 2, H W C], normal with variance 1 / l^2. It is public and equal for all."""
    shape = (_features(settings) // 2, math.prod(space.shape))
    draws = np.random.default_rng(FREQUENCIES).standard_normal(shape)
    return draws / math.sqrt(settings.length_scale)


def features(pixels: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Returns phi [n, d], each row of norm 1 to a float's last bits.

    Args:
        pixels: Images [n, H, W, C] in [0, 1].
        directions: W [d / 2, H W C].

    >>> phi = features(np.ones((1, 2, 2, 1)), np.ones((3, 4)))
    >>> phi.shape, round(float(np.linalg.norm(phi)), 12)
    ((1, 6), 1.0)
    """
    angles = pixels.reshape(len(pixels), -1).astype(np.float64) @ directions.T
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / math.sqrt(len(directions))


def embedding_sum(shard: Images, settings: DpMerf, space: Space, scale: int) -> np.ndarray:
    """Returns, per class, the sum of phi and of alpha.

    Args:
        shard: The client's private records.
        settings: `features` is d; `count_weight` is alpha.
        space: The shape of the images and the declared number of classes K.
        scale: Lattice steps per unit.

    Returns:
        int64 [K, d + 1], in lattice steps.
    """
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
    selected: np.ndarray,
    settings: DpMerf,
    space: Space,
    seed: int,
) -> None:
    """Trains the generator by Adam on the sum over selected classes of |m_c - mean phi(G(z, c))|^2.

    Each selected class has an equal part of the batch.
    """
    stream = torch.Generator().manual_seed(seed)
    directions = torch.from_numpy(frequencies(settings, space)).float()
    target = torch.from_numpy(means[selected]).float()
    position = torch.arange(max(settings.batch, 2 * len(selected))) % len(selected)
    averages = torch.eye(len(selected))[position].T / torch.bincount(position)[:, None]
    labels = torch.from_numpy(selected)[position]
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
    """Returns d, which is even: cosines and sines come in pairs."""
    return settings.features - settings.features % 2
