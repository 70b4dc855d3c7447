"""Every mechanism against every property its noise must have, at what the mechanism really releases.

Each row runs a mechanism without a signal (an empty shard, or votes that sum to zero) and yields its release over the
deviation that the budget demands, written out here anew: standard normal, if all is well. The noise is the operating
system's, so every test may fail by chance; the gates keep that below one in a million for a run of them all.
"""

import math
import random
from collections.abc import Callable
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
import torch
from blocks import DATALENS, DPSGD
from scipy.stats import chi2, kstest

from models import classifiers
from pipelines import seeds
from pipelines.config.dp import Dpsgd, DpsgdHead
from pipelines.config.generators import Datalens, DpHead, DpMerf, DpMoments, DpTeacher
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import dpsgd, dpsgd_head
from pipelines.federation.core.messages import Payload
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.head_account import HeadAccount
from pipelines.privacy import noise
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.synthesis import dp_head, dp_merf, dp_moments, dp_teacher
from pipelines.synthesis.base import Space
from pipelines.synthesis.datalens import generator as datalens
from pipelines.synthesis.datalens import votes
from pipelines.training.tensors import state_of

BUDGET = Budget(5.0, 1e-5)
LEAST_DRAWS = 20_000  # with so many, a scale wrong by half is a p-value below 1e-50
ALARM = 1e-8  # of 16 tests of the law
SIX_AND_A_HALF = 6.5  # deviations of a correlation: 8e-11, of 40 of them


def source(client: str, seed: int) -> noise.Noise:
    """Returns the source that the stages make.

    The seed goes in, and only the test-only source may use it.
    """
    return noise.source("os_entropy", seeds.derive(seed, "test noise", client))


def nobody(space: Space) -> Images:
    return Images(
        np.empty((0, *space.shape), np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    )


@contextmanager
def arguments(module, name: str):
    """Collects the first argument of every call of `module.name`, which still works."""
    seen, real = [], getattr(module, name)
    with mock.patch.object(
        module, name, lambda first, *others: seen.append(first) or real(first, *others)
    ):
        yield seen


MOMENTS = {
    "centre": 0.3,
    "cutoff": 4,
    "clip": 2.0,
    "count_weight": 0.5,
    "residual_clip": 1.5,
    "inflation": 1.0,
}
MOMENTS |= {"contrast": 1.0, "first_share": 0.6, "low_epsilon": None}


def moments(release: int) -> Callable:
    """Release 1 goes to the means and nowhere else, release 2 to the roots."""
    settings = DpMoments(**MOMENTS)
    # 22,000 draws of either: a class has 11 of the one and 55 of the other
    space = Space(height=6, width=5, channels=1, classes=(2000, 400)[release - 1])
    sigma = 1 / (BUDGET.mu * math.sqrt((0.6, 0.4)[release - 1]))

    def draw(client: str, seed: int) -> np.ndarray:
        plan = dp_moments.plan(settings, BUDGET, space)
        with arguments(dp_moments, ("estimate_means", "estimate_roots")[release - 1]) as released:
            dp_moments.fit(nobody(space), plan, source(client, seed), seed)
        return released[0].ravel() / sigma

    return draw


def vote_sums(client: str, seed: int) -> np.ndarray:
    """Returns all steps of a run.

    Teachers always vote, so their sum is put to zero before the noise.
    """
    k, batch, steps = 20, 10, 4
    asked = {
        "teachers": 4,
        "teacher_warmup": 0,
        "teacher_hidden": 4,
        "clip": 0.0,
        "labels": "uniform",
    }
    settings = Datalens(**{**DATALENS, **asked, "steps": steps, "batch": batch, "top_k": k})
    space = Space(height=28, width=28, channels=1, classes=3)
    plan = datalens.plan(settings, BUDGET, space)

    def nothing(ballots):
        return np.zeros(ballots.shape[1:], np.int64)

    with mock.patch.object(votes, "tally", nothing), arguments(votes, "thresholded") as released:
        datalens.fit(nobody(space), plan, source(client, seed), seed)
    return np.stack(released).ravel() / (2 * math.sqrt(k * batch * steps) / BUDGET.mu)


def noisy_step(client: str, seed: int) -> np.ndarray:
    """Takes one step from zero weights with learning rate 1: minus noise over the expected lot."""
    clip, lot = 0.5, 10.0
    settings = Dpsgd(
        **{**DPSGD, "rounds": 1, "local_steps": 1, "expected_lot": lot, "clipping_norm": clip}
    )
    account = Account(BUDGET.epsilon, BUDGET.delta, settings)
    model = classifiers.build("mlp", shape=(28, 28, 1), classes=10, seed=seed)
    zeros = {name: np.zeros_like(array) for name, array in state_of(model).items()}
    start = Payload(zeros, {"noise_factor": 1.0, "local_steps": 1})
    data = nobody(Space(height=28, width=28, channels=1, classes=10))
    state = dpsgd.Client(model, data, account, source(client, seed))
    reply = dpsgd.client_update(start, state, settings)
    moved = np.concatenate([array.ravel() for array in reply.arrays.values()]).astype(np.float64)
    return moved * lot / (account.noise_multiplier * clip)


def embeddings(client: str, seed: int) -> np.ndarray:
    block = {"features": 2000, "length_scale": 8.0, "count_weight": 0.5, "network": "mlp"}
    settings = DpMerf(**block, steps=1, batch=40, learning_rate=1e-3)
    plan = dp_merf.plan(settings, BUDGET, Space(height=4, width=4, channels=1, classes=12))
    released, real = [], dp_merf.release
    with mock.patch.object(
        dp_merf, "release", lambda *a, **k: released.append(real(*a, **k)) or released[-1]
    ):
        dp_merf.fit(nobody(plan.space), plan, source(client, seed), seed)
    return released[0].ravel() * BUDGET.mu / math.hypot(1.0, 0.5)


def teacher_steps(client: str, seed: int) -> np.ndarray:
    """Takes two steps of learning rate 1 without momentum or averaging: minus noise over the noisy
    count.
    """
    share, clip = 0.6, 0.5
    warm = {"images": 20, "epochs": 1, "batch": 20, "learning_rate": 1e-9}
    block = {
        "teacher_share": share,
        "steps": 2,
        "clipping_norm": clip,
        "learning_rate": 1.0,
        "momentum": 0.0,
    }
    settings = DpTeacher(
        **MOMENTS, **block, averaging=0.0, classifier="mlp", augmentation=None, warm_start=warm
    )
    plan = dp_teacher.plan(settings, BUDGET, Space(height=28, width=28, channels=1, classes=10))
    sums = []

    def nothing(model, *_):
        sums.append({name: weights.detach().clone() for name, weights in model.named_parameters()})
        return {name: torch.zeros_like(weights) for name, weights in sums[-1].items()}

    with mock.patch.object(dp_teacher, "clipped_sum", nothing):
        state = dp_teacher.fit(nobody(plan.space), plan, source(client, seed), seed)
    moved = np.concatenate(
        [(sums[1][name] - sums[0][name]).numpy().ravel() for name in sums[0]]
    ).astype(np.float64)
    return moved * float(state["count"]) * math.sqrt(share) * BUDGET.mu / (math.sqrt(2) * clip)


TWO_STEPS = [{"from_signal": 0.0, "steps": 2, "learning_rate": 1.0}]


def head_steps(client: str, seed: int) -> np.ndarray:
    """Returns the sums of two steps. `linear_head` releases the count before them."""
    own = {"head_share": 1.0, "count_share": 0.01, "clipping_norm": 0.5, "schedules": TWO_STEPS}
    settings = DpHead.model_validate({**MOMENTS, **own})
    plan = dp_head.plan(settings, BUDGET, Space(height=8, width=8, channels=1, classes=60))
    released, real = [], dp_head.release
    with mock.patch.object(
        dp_head, "release", lambda *a, **k: released.append(real(*a, **k)) or released[-1]
    ):
        dp_head.fit(nobody(plan.space), plan, source(client, seed), seed)
    return np.stack(released).ravel() * math.sqrt(0.99) * BUDGET.mu / math.sqrt(2)


def shared_head_steps(client: str, seed: int) -> np.ndarray:
    """Releases a count and two sums of no records over the count: noise alone."""
    own = {"rounds": 3, "count_share": 0.01, "clipping_norm": 0.5, "schedules": TWO_STEPS}
    settings = DpsgdHead.model_validate(own)
    account = HeadAccount(BUDGET.epsilon, BUDGET.delta, settings)
    data = nobody(Space(height=8, width=8, channels=1, classes=60))
    zeros = np.zeros((60, 215), np.float32)
    state = dpsgd_head.Client(data, zeros, account, source(client, seed))
    released = []
    for number in (1, 2, 3):
        payload = Payload({"head": zeros}, {"round": number, "planned_steps": 2})
        released.append(dpsgd_head.client_update(payload, state, settings).arrays["head"])
    noise = np.stack(released[1:]).ravel().astype(np.float64)
    return noise * state.count * math.sqrt(0.99) * BUDGET.mu / math.sqrt(2)


MECHANISMS = {
    "dp_head step": head_steps,
    "dpsgd_head step": shared_head_steps,
    "dp_merf release": embeddings,
    "dp_teacher step": teacher_steps,
    "dp_moments release 1": moments(1),
    "dp_moments release 2": moments(2),
    "datalens votes": vote_sums,
    "dpsgd step": noisy_step,
}


@pytest.fixture(scope="module", params=MECHANISMS)
def draw(request):
    return MECHANISMS[request.param]


@pytest.fixture(scope="module")
def first(draw):
    return draw("c0", seed=7)


def unrelated(one: np.ndarray, other: np.ndarray) -> bool:
    """Returns whether two draws are neither the same noise nor the same noise changed a little."""
    return abs(np.corrcoef(one, other)[0, 1]) < SIX_AND_A_HALF / math.sqrt(len(one))


def has_the_law(draws: np.ndarray) -> bool:
    """Returns whether draws are standard normal, by Kolmogorov and Smirnov and by the sum of
    squares.
    """
    squares = chi2(len(draws))
    spread = 2 * min(squares.cdf(np.sum(draws**2)), squares.sf(np.sum(draws**2)))
    return kstest(draws, "norm").pvalue > ALARM and spread > ALARM


def test_the_same_seed_and_parameters_give_other_noise(draw, first):
    assert unrelated(first, draw("c0", seed=7))


def test_another_client_gets_other_noise(draw, first):
    assert unrelated(first, draw("c1", seed=7))


def test_no_global_seed_reaches_the_noise(draw):
    drawn = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        drawn.append(draw("c0", seed=7))
    assert unrelated(*drawn)


def test_no_noise_is_used_twice_within_a_release(first):
    """The test compares neighbours, and the halves, to find classes, steps or layers that share
    their noise.
    """
    half = len(first) // 2
    assert unrelated(first[1:], first[:-1])
    assert unrelated(first[:half], first[half : 2 * half])


def test_a_release_without_a_signal_is_noise_of_the_planned_law(first):
    assert len(first) >= LEAST_DRAWS
    assert has_the_law(first)


@pytest.mark.parametrize("factor", [2 / 3, 3 / 2, 0.0])
def test_control_another_scale_is_rejected(first, factor):
    assert not has_the_law(first * factor)


def test_control_seeded_noise_is_told_apart(draw, monkeypatch):
    monkeypatch.setattr(noise, "OsEntropy", lambda: noise.SeededForTests(1))
    assert not unrelated(draw("c0", seed=7), draw("c1", seed=8))
