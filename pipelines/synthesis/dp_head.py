"""Fits `dp_head`: a linear classifier on fixed scattering features, beside images of `dp_moments`.

Released: the number of records with noise, and T sums over *all* records of gradients clipped to C.
Each sum is in units of C, so that its sensitivity is 1 when one record is added or removed, as is
the count's. Nothing is sampled, and mu squared is split beforehand: `head_share` for both, of which
`count_share` buys the count, and the rest for the two sums of `dp_moments`. T follows from the noisy
count, and each of the T adaptive steps has the T-th part of what the steps may spend. So all
together cost exactly the budget's mu (Dong, Roth and Su). Accounted in `plan`; released in `fit`.

All sums are integers on a lattice, and their noise is the discrete Gaussian
(`privacy/lattice_gradients`). Features read one image each, and a basis of noise images that is
public. Momentum and averaging are post-processing.
"""

import math
from dataclasses import replace

import numpy as np
from torch import nn
from tqdm import tqdm

from models import fixed_features as networks
from pipelines.config.data import Encoder
from pipelines.config.generators import DpHead
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.lattice import lattice
from pipelines.privacy.discrete_gaussian import Budget, release
from pipelines.privacy.lattice_gradients import COARSEST, Inputs, gradient_sum
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.privacy.statement import NOT_COVERED, OF_NETWORK
from pipelines.synthesis import dp_moments
from pipelines.synthesis.base import HERE, Plan, Space, Weights, Where, stated
from pipelines.training import fixed_features, linear_head
from pipelines.training.fixed_features import Fixed
from pipelines.training.tensors import with_state

KNOWN_FAILURES = (
    "those of dp_moments; the head knows no more than a linear map of fixed wavelet features can"
)
# of the mechanism, in the ledger: raise it when the same parameters would release something else
VERSION = 1
IDENTITY = Identity(
    consequences=frozenset({"count", "gradients", "labels", "lattice", "moments", "noise"}),
    neutral={
        "settings.inflation": 1.0,
        "settings.contrast": 1.0,
        "settings.low_epsilon": None,
        "settings.momentum": 0.0,
        "settings.averaging": 0.0,
        "settings.network": "scatter",
        "settings.warps": None,
    },
)
# of the head's weights in the state, float32 [K, d]
HEAD = "head"
# of the same weights in the network (models/fixed_features)
LINEAR = "2.weight"
# of the released number of records, where there are no images to have one
COUNT = "records"


def plan(settings: DpHead, budget: Budget, space: Space) -> Plan:
    """Splits the budget between images, count and steps. No private record is read.

    Args:
        settings: The settings of `synthesis.dp_head`.
        budget: The budget, which the parts spend whole.
        space: What is public about the images.

    Raises:
        UserError: Delta is too small for the lattice of the noise.
    """
    head_budget = _head_budget(settings, budget)
    sigma_count = head_budget.sigma(settings.count_share)
    share_of_steps = 1 - settings.count_share
    steps = sorted({schedule.steps for schedule in settings.schedules})
    sigmas = [math.sqrt(count) * head_budget.sigma(share_of_steps) for count in steps]
    fixed = fixed_of(settings, space)
    weights = (fixed.count + 1) * space.classes
    scale = lattice(
        head_budget,
        sigmas=(sigma_count, *sigmas),
        draws=1 + steps[-1] * weights,
        coarsest=COARSEST,
    )
    details = {
        "count": {"sensitivity": 1.0, "sigma": sigma_count},
        "gradients": {
            "clipping_norm": settings.clipping_norm,
            "sensitivity": 1.0,
            "mu": math.sqrt(share_of_steps) * head_budget.mu,
            "sigma_by_steps": dict(zip(map(str, steps), sigmas)),
            "released_numbers_per_step": weights,
        },
        "lattice": {"steps_per_unit": scale},
        "features": fixed.facts,
        "settings": settings.model_dump(),
        "labels": "noisy histogram, part of release 1 of dp_moments",
    }
    moments = moments_plan(settings, budget, space)
    lines = (
        f"dp_head: {' or '.join(map(str, steps))} steps over all records by their noisy number, "
        f"noise {' or '.join(f'{sigma:.3g}' for sigma in sigmas)} times the clipping norm each",
    )
    if moments:
        moments_details = dict(moments.statement.details)
        del moments_details["hyperparameters"]
        details["moments"] = moments_details
        lines = (*moments.lines, *lines)
    statement = stated(
        "dp_head (full-batch noisy gradient steps of a linear head on fixed features)",
        budget,
        details,
        accountant="exact Gaussian DP (mu); discrete noise on integer sums",
        not_covered=(*NOT_COVERED, *OF_NETWORK.get(settings.network, ())),
    )
    return Plan(settings, space, statement, lines=lines)


def fit(
    shard: Images, plan: Plan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Releases the moments, then the number of records, then T noisy steps of the head.

    Args:
        shard: The client's private records.
        plan: The plan, from `plan`.
        noise: The noise source.
        seed: Not used: all that is random here is the noise.
        where: Not used.

    Returns:
        The state of dp_moments where there are images, the head, and the number of records that
        was released with it.
    """
    settings = plan.settings
    statement = plan.statement
    budget = Budget(statement.epsilon, statement.delta)
    moments = moments_plan(settings, budget, plan.space)
    state = dp_moments.fit(shard, moments, noise, seed) if moments else {}
    scale = statement.details["lattice"]["steps_per_unit"]
    sigma = statement.details["count"]["sigma"]
    count = linear_head.released_count(len(shard), sigma=sigma, scale=scale, noise=noise)
    inputs = linear_head.lattice_inputs(shard, fixed_of(settings, plan.space), settings.warps)
    return state_of(plan, state, noisy_steps(inputs, plan, count, noise), count)


def state_of(
    plan: Plan, moments: dict[str, np.ndarray], head: np.ndarray, count: float
) -> dict[str, np.ndarray]:
    """Returns the state, from what was released. No private record is read.

    Args:
        plan: The plan.
        moments: The state of dp_moments; empty where there are no images.
        head: The average of the iterates, float64 [d, K].
        count: The number of records, as it was released.
    """
    return {
        **moments,
        HEAD: head.T.astype(np.float32),
        COUNT: np.array(count),
        "shape": np.array(plan.space.shape),
        "classes": np.array(plan.space.classes),
    }


def noisy_steps(inputs: Inputs, plan: Plan, count: float, noise: Noise) -> np.ndarray:
    """Takes T steps along noisy sums, and returns the average of the iterates, float64 [d, K].

    Args:
        inputs: The private records on the lattice.
        plan: The plan, from `plan`.
        count: The number of records, as it was released.
        noise: The noise source.
    """
    settings = plan.settings
    gradients = plan.statement.details["gradients"]
    scale = plan.statement.details["lattice"]["steps_per_unit"]
    schedule = linear_head.schedule_of(settings, gradients["mu"] * count)
    sigma = gradients["sigma_by_steps"][str(schedule.steps)]
    descent = linear_head.start(inputs.steps.shape[1], plan.space.classes)
    for _ in tqdm(range(schedule.steps), desc="dp_head", disable=None, mininterval=1):
        total = gradient_sum(
            inputs, descent.weights, clipping_norm=settings.clipping_norm, scale=scale
        )
        noisy = release(total, sigma=sigma, scale=scale, noise=noise)
        descent = linear_head.after(
            descent,
            noisy / count,
            learning_rate=schedule.learning_rate,
            momentum=settings.momentum,
            averaging=settings.averaging,
        )
    return descent.average


def sample(state: dict[str, np.ndarray], count: int, seed: int) -> Images:
    """Draws images of dp_moments, with their own labels.

    Args:
        state: The state, from `fit`.
        count: How many images to draw.
        seed: The seed of the draw.

    Raises:
        UserError: The whole budget went into the head.
    """
    if "means" not in state:
        raise UserError("This dp_head has no images: its head_share is 1.")
    return dp_moments.sample(state, count, seed)


def classifier(state: dict[str, np.ndarray], encoder: Encoder | None = None) -> nn.Module:
    """Returns the released classifier of float images [B, C, H, W].

    Args:
        state: The state, from `fit`.
        encoder: The frozen network of the profile, where the head is on its features.
    """
    fixed = Fixed(tuple(state["shape"].tolist()), encoder)
    model = networks.head(fixed_features.module(fixed), int(state["classes"]))
    return with_state(model, {LINEAR: state[HEAD]}).eval()


def classifier_weights(state: dict[str, np.ndarray], settings: dict) -> Weights:
    """Returns the network of the released classifier, and its weights.

    Args:
        state: The state, from `fit`.
        settings: Those in the details of the release's statement. An old one names no network, and
            its head is on scattering features.
    """
    network = settings.get("network", IDENTITY.neutral["settings.network"])
    return Weights(network, {LINEAR: state[HEAD]})


def fixed_of(settings: DpHead, space: Space) -> Fixed:
    """Returns which fixed features the head is trained on."""
    return Fixed(space.shape, space.encoder if settings.network == "encoder" else None)


def _head_budget(settings: DpHead, budget: Budget) -> Budget:
    lattices = 1 if settings.head_share == 1 else 2
    return replace(budget, share=budget.share * settings.head_share, lattices=lattices)


def moments_plan(settings: DpHead, budget: Budget, space: Space) -> Plan | None:
    """Returns the plan of the images, or None where the head has the whole budget."""
    if settings.head_share == 1:
        return None
    share = budget.share * (1 - settings.head_share)
    return dp_moments.plan(settings, replace(budget, share=share, lattices=2), space)
