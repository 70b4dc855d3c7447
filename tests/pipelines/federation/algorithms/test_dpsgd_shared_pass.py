"""Tests a round's first steps in one call against clients that answer one after the other."""

import math

import numpy as np
import pytest
from blocks import DPSGD

from models import classifiers
from pipelines.config.dp import Dpsgd
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import dpsgd
from pipelines.federation.core.control_variates import named, parted
from pipelines.federation.core.messages import Payload, weighted_mean
from pipelines.federation.inprocess import InProcess, engine_of, in_turn
from pipelines.privacy import layerwise
from pipelines.privacy.noise import SeededForTests
from pipelines.training.tensors import state_of

EARLIER = 1.6  # epsilon
SIZES = {
    "a": 30,
    "b": 0,
    "c": 90,
    "d": 12,
}  # of c an expected lot is 45, of all together 66: one pass


def network():
    return classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)


def clients(epsilons: dict[str, float], **changes) -> dict[str, dpsgd.Client]:
    settings = Dpsgd(**{**DPSGD, "sampling_rate": 0.5, "rounds": 4, **changes})
    rng = np.random.default_rng(0)
    made = {}
    for seed, (client, count) in enumerate(SIZES.items()):
        pixels = rng.integers(0, 256, (count, 8, 8, 1)).astype(np.uint8)
        data = Images(pixels, rng.integers(0, 10, count), np.arange(count))
        account = dpsgd.new_account(epsilons[client], 1e-5, settings)
        made[client] = dpsgd.Client(network(), data, account, SeededForTests(seed))
    return made


def engine(kind, states: dict[str, dpsgd.Client]) -> InProcess:
    return kind(dpsgd, states, states["a"].account.settings)


def answers(engine: InProcess, rounds: int = 4, variates: bool = False) -> list[list]:
    """Returns (client, arrays, scalars) of each round.

    Each round begins with the mean of the last, other noise and another norm.
    """
    weights, found = state_of(network()), []
    steps = engine.states["a"].account.settings.local_steps
    for number in range(rounds):
        control = named(
            {name: np.full_like(array, 0.01 * number) for name, array in weights.items()}
        )
        asked = {
            "noise_factor": 0.9**number,
            "local_steps": steps,
            "clipping_norm": 0.5 * 0.8**number,
        }
        replies = engine.call(Payload({**weights, **(control if variates else {})}, asked))
        found.append(
            [(reply.client, reply.payload.arrays, reply.payload.scalars) for reply in replies]
        )
        if replies:
            weights, _ = parted(weighted_mean(replies, [1.0] * len(replies)))
    return found


def same(one: list[list], other: list[list]) -> None:
    for found, alone in zip(one, other, strict=True):
        assert [client for client, *_ in found] == [client for client, *_ in alone]
        for (_, arrays, told), (_, arrays_alone, told_alone) in zip(found, alone):
            assert told == pytest.approx(told_alone, rel=1e-3, abs=1e-6)
            assert set(arrays) == set(arrays_alone)
            for name, array in arrays_alone.items():
                np.testing.assert_allclose(arrays[name], array, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"local_steps": 1},
        {"local_steps": 3, "momentum": 0.9},
        {"clipping": "quantile", "optimiser": "adam", "learning_rate": 0.01},
        {"clipping": "auto_s"},
        {"clipping": "proxy"},
        {"control_variates": True},
    ],
)
def test_nobodys_answer_differs_from_that_of_clients_in_turn(changes):
    alike = dict.fromkeys(SIZES, 3.0)
    made = [
        answers(engine(kind, clients(alike, **changes)), variates="control_variates" in changes)
        for kind in (engine_of, in_turn)
    ]
    assert [client for client, *_ in made[0][0]] == sorted(SIZES)
    same(*made)


@pytest.mark.parametrize("first_to_go", ["a", "c"])
def test_who_has_left_is_not_drawn_for_and_no_one_else_notices(first_to_go):
    """The client leaves during a round's steps, and takes those that it can pay."""
    few = {**dict.fromkeys(SIZES, 3.0), first_to_go: EARLIER}
    asked = {"noise_multiplier": 4.0, "local_steps": 3}
    engines = [engine(kind, clients(few, **asked)) for kind in (engine_of, in_turn)]
    one, other = (answers(each, 40) for each in engines)
    same(one, other)
    there = [[client for client, *_ in found] for found in one]
    rest = [client for client in sorted(SIZES) if client != first_to_go]
    assert there[0] == sorted(SIZES) and rest in there and there[-1] == []
    gone, stayed = (each.states[first_to_go] for each in engines)
    assert (
        gone.account.steps == stayed.account.steps
        and gone.account.steps > 3
        and gone.account.steps % 3
    )
    for client in SIZES:
        assert engines[0].states[client].noise.position == engines[1].states[client].noise.position


def test_small_lots_share_a_pass_and_later_steps_do_not(monkeypatch):
    sizes, real = [], layerwise.parts

    def parts(model, weights, images, labels):
        sizes.append(len(labels))
        return real(model, weights, images, labels)

    monkeypatch.setattr(layerwise, "parts", parts)
    answers(engine(engine_of, clients(dict.fromkeys(SIZES, math.inf), local_steps=2)), rounds=1)
    first, *later = sizes
    assert first > 45 and len(later) == 3 and max(later) < first  # b has no records, and no pass
