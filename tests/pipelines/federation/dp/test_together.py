"""A round's first steps in one call, against clients that answer one after the other."""

import math

import numpy as np
import pytest
from blocks import DPSGD

from models import classifiers
from pipelines.blocks.dp import Dpsgd
from pipelines.datasets.containers import Images
from pipelines.federation.dp import dpsgd
from pipelines.federation.dp.together import Together
from pipelines.federation.engines.inprocess import InProcess
from pipelines.federation.messages import Payload
from pipelines.privacy import layerwise
from pipelines.privacy.noise import SeededForTests
from pipelines.training.tensors import state_of

SIZES = {"a": 30, "b": 0, "c": 90, "d": 12}  # of c an expected lot is 45, of all together 66: one pass


def network():
    return classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)


def clients(epsilons: dict[str, float], **changes) -> dict[str, dpsgd.Client]:
    settings = Dpsgd(**{**DPSGD, "sampling_rate": 0.5, "rounds": 4, **changes})
    rng = np.random.default_rng(0)
    made = {}
    for seed, (client, count) in enumerate(SIZES.items()):
        pixels = rng.integers(0, 256, (count, 8, 8, 1)).astype(np.uint8)
        data = Images(pixels, rng.integers(0, 10, count), np.arange(count))
        account = dpsgd.account(epsilons[client], 1e-5, settings)
        made[client] = dpsgd.Client(network(), data, account, SeededForTests(seed))
    return made


def answers(kind: type[InProcess], rounds: int = 3, epsilons: dict | None = None, **changes) -> list[list]:
    """(client, arrays, scalars) of each round, every round from the first one's mean."""
    engine = kind(clients(epsilons or dict.fromkeys(SIZES, 3.0), **changes))
    weights, found = state_of(network()), []
    control = {f"variate.{name}": np.zeros_like(array) for name, array in weights.items()}
    sent = {**weights, **control} if changes.get("control_variates") else weights
    asked = {"noise_factor": 1.0, "local_steps": engine.handlers["a"].account.settings.local_steps}
    for _ in range(rounds):
        replies = engine.call(Payload(sent, asked))
        found.append([(reply.client, reply.payload.arrays, reply.payload.scalars) for reply in replies])
    return found


@pytest.mark.parametrize(
    "changes",
    [
        {"local_steps": 1},
        {"local_steps": 3, "momentum": 0.9},
        {"clipping": "quantile", "optimiser": "adam", "learning_rate": 0.01},
        {"clipping": "auto_s"},
    ],
)
def test_nobodys_answer_differs_from_that_of_clients_in_turn(changes):
    for one, other in zip(answers(Together, **changes), answers(InProcess, **changes), strict=True):
        assert [client for client, *_ in one] == [client for client, *_ in other] == sorted(SIZES)
        for (_, arrays, told), (_, alone, told_alone) in zip(one, other):
            assert told == pytest.approx(told_alone, rel=1e-3, abs=1e-6)
            for name in alone:
                np.testing.assert_allclose(arrays[name], alone[name], atol=1e-6)


def test_who_has_left_is_not_drawn_for_and_no_one_else_notices():
    few = {"a": 3.0, "b": 3.0, "c": 1.5, "d": 3.0}
    one, other = (answers(kind, 40, few, noise_multiplier=2.5) for kind in (Together, InProcess))
    there = [[client for client, *_ in found] for found in one]
    assert there == [[client for client, *_ in found] for found in other]
    assert there[0] == ["a", "b", "c", "d"] and ["a", "b", "d"] in there and there[-1] == []
    last = there.index([]) - 1
    np.testing.assert_allclose(one[last][-1][1]["1.weight"], other[last][-1][1]["1.weight"], atol=1e-6)


def test_small_lots_share_a_pass_and_later_steps_do_not(monkeypatch):
    sizes, real = [], layerwise.parts

    def parts(model, weights, images, labels):
        sizes.append(len(labels))
        return real(model, weights, images, labels)

    monkeypatch.setattr(layerwise, "parts", parts)
    answers(Together, rounds=1, epsilons=dict.fromkeys(SIZES, math.inf), local_steps=2)
    first, *later = sizes
    assert first > 45 and len(later) == 3 and max(later) < first  # b has no records, and no pass
