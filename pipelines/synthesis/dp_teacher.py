"""Fits `dp_teacher`: images of `dp_moments`, relabelled by a classifier trained with noisy steps.

The classifier takes its steps on the records themselves. Released: the two sums of dp_moments at
1 - `teacher_share` of mu squared, and T sums over *all* records of gradients clipped to C, each
with N(0, (z C)^2). A sum's sensitivity is C when one record is added or removed. All records take
part in every step, so nothing is sampled and the T adaptive steps cost mu = sqrt(T) / z exactly
(Dong, Roth and Su); mu squared adds up to the budget's. Accounted in `plan`; released in `fit`,
each step once.

The start (a classifier trained on the images of dp_moments), the divisor (its noisy count),
momentum and averaging are post-processing. The gradients are floats, and their noise is a rounded
float normal (`privacy/float_gaussian`), as in DP-SGD: the bound is that of exact arithmetic. The
two first sums have their discrete noise.
"""

import math

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from models import classifiers
from pipelines.config.generators import DpTeacher
from pipelines.datasets.labelled_images import Images
from pipelines.privacy import float_gaussian
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.privacy.per_sample import clipped_sum
from pipelines.synthesis import dp_moments
from pipelines.synthesis.base import HERE, Plan, Space, Weights, Where, stated
from pipelines.training.classifier import fit as fit_classifier
from pipelines.training.tensors import logits, state_of, tensors, with_state

KNOWN_FAILURES = (
    "those of dp_moments; at a small budget a few hundred records teach the classifier nothing"
)
# of the mechanism, in the ledger: raise it when the same parameters would release something else
VERSION = 2
IDENTITY = Identity(
    consequences=frozenset({"gradients", "labels", "moments", "noise"}),
    neutral={
        "settings.inflation": 1.0,
        "settings.contrast": 1.0,
        "settings.low_epsilon": None,
        "settings.augmentation": None,
        "settings.momentum": 0.0,
        "settings.averaging": 0.0,
    },
)
FLOAT_NOISE = "for the gradients a rounded float normal of the same entropy"
# of the classifier's weights in the state
PREFIX = "teacher."


def plan(settings: DpTeacher, budget: Budget, space: Space) -> Plan:
    """Splits the budget between the moments and the T steps. No private record is read.

    Args:
        settings: The settings of `synthesis.dp_teacher`.
        budget: The budget, which the moments and the steps spend whole.
        space: What is public about the images.

    Raises:
        UserError: Delta is too small for the lattice of the noise.
    """
    moments = _moments_plan(settings, budget, space)
    share = Budget(budget.epsilon, budget.delta, budget.share * settings.teacher_share)
    multiplier = math.sqrt(settings.steps) / share.mu if budget.private else 0.0
    moments_details = dict(moments.statement.details)
    del moments_details["hyperparameters"]
    details = {
        "moments": moments_details,
        "gradients": {
            "sensitivity": settings.clipping_norm,
            "sigma": multiplier * settings.clipping_norm,
            "noise_multiplier": multiplier,
            "T": settings.steps,
            "mu": share.mu,
        },
        "settings": settings.model_dump(),
        "labels": "the released classifier's, of images drawn by the noisy histogram of release 1",
    }
    statement = stated(
        "dp_teacher (dp_moments, and full-batch noisy gradient steps of a classifier)",
        budget,
        details,
        noise=FLOAT_NOISE,
        accountant=(
            "exact Gaussian DP (mu); discrete noise for the moments, float noise for the gradients"
        ),
    )
    line = (
        f"dp_teacher: {settings.steps} steps over all records, noise {multiplier:.3g} times the "
        "clipping norm each"
    )
    return Plan(settings, space, statement, lines=(*moments.lines, line))


def fit(
    shard: Images, plan: Plan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Releases the moments, trains a classifier on their images, then takes T noisy steps.

    Args:
        shard: The client's private records.
        plan: The plan, from `plan`.
        noise: The noise source.
        seed: The seed of the classifier's weights and of its start.
        where: Not used.

    Returns:
        The state of dp_moments, and the classifier's weights under PREFIX.
    """
    settings = plan.settings
    statement = plan.statement
    moments = _moments_plan(settings, Budget(statement.epsilon, statement.delta), plan.space)
    state = dp_moments.fit(shard, moments, noise, seed)
    model = classifiers.build(
        settings.classifier, shape=plan.space.shape, classes=plan.space.classes, seed=seed
    )
    _warm_start(model, state, settings, seed)
    deviation = statement.details["gradients"]["sigma"]
    _noisy_steps(model, shard, settings, deviation, float(state["count"]), noise)
    of_classifier = {PREFIX + name: array for name, array in state_of(model).items()}
    facts = {
        "classes": np.array(plan.space.classes),
        "cnn": np.array(int(settings.classifier == "cnn")),
    }
    return {**state, **of_classifier, **facts}


def sample(state: dict[str, np.ndarray], count: int, seed: int) -> Images:
    """Draws images of dp_moments and labels them by the classifier.

    Args:
        state: The state, from `fit`.
        count: How many images to draw.
        seed: The seed of the draw.
    """
    data = dp_moments.sample(state, count, seed)
    images, _ = tensors(data)
    labels = logits(classifier(state), images).argmax(1).numpy()
    return Images(data.images, labels, data.ids)


def classifier(state: dict[str, np.ndarray]) -> nn.Module:
    """Returns the released classifier of float images [B, C, H, W]."""
    network, arrays = classifier_weights(state)
    shape = tuple(state["shape"].tolist())
    model = classifiers.build(network, shape=shape, classes=int(state["classes"]), seed=0)
    return with_state(model, arrays).eval()


def classifier_weights(state: dict[str, np.ndarray], settings: dict | None = None) -> Weights:
    """Returns the network of the released classifier, and its weights.

    Args:
        state: The state, from `fit`.
        settings: Not used, because the state names the network.
    """
    arrays = {}
    for entry, array in state.items():
        if entry.startswith(PREFIX):
            arrays[entry.removeprefix(PREFIX)] = array
    return Weights("cnn" if state["cnn"] else "mlp", arrays)


def _moments_plan(settings: DpTeacher, budget: Budget, space: Space) -> Plan:
    part = Budget(budget.epsilon, budget.delta, budget.share * (1 - settings.teacher_share))
    return dp_moments.plan(settings, part, space)


def _warm_start(
    model: nn.Module, state: dict[str, np.ndarray], settings: DpTeacher, seed: int
) -> None:
    """Trains the classifier on images of the moments: post-processing, no record is read."""
    start = settings.warm_start
    fit_classifier(
        model,
        dp_moments.sample(state, start.images, seed),
        epochs=start.epochs,
        batch=start.batch,
        learning_rate=start.learning_rate,
        seed=seed,
        augmentation=settings.augmentation,
        one_cycle=True,
    )


def _noisy_steps(
    model: nn.Module,
    shard: Images,
    settings: DpTeacher,
    deviation: float,
    count: float,
    noise: Noise,
) -> None:
    """Takes T steps of momentum along the noisy sums over `count`, the released number of records.

    The average of the iterates stays in the model.
    """
    images, labels = tensors(shard)
    average = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    speed = {name: torch.zeros_like(tensor) for name, tensor in average.items()}
    for _ in tqdm(range(settings.steps), desc="dp_teacher", disable=None, mininterval=1):
        total = clipped_sum(model, images, labels, settings.clipping_norm)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                gradient_sum = total[name].numpy()
                noisy = float_gaussian.release(gradient_sum, deviation=deviation, noise=noise)
                gradient = torch.from_numpy(noisy / count).to(parameter)
                speed[name] = settings.momentum * speed[name] + gradient
                parameter -= settings.learning_rate * speed[name]
                past = settings.averaging * average[name]
                average[name] = past + (1 - settings.averaging) * parameter
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(average[name])
