"""Tests that a secure sum is the plain sum to the last bit, whoever drops out at whatever step."""

import math

import numpy as np
import pytest

from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.privacy.secure_sums.in_process import Summation, example, run
from pipelines.privacy.secure_sums.messages import Step
from pipelines.privacy.secure_sums.noise_shares import SharePlan, planned
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.server import Server

# a client whose vector came stays in the sum, whenever it drops out after that
STAYS = (Step.CONFIRM, Step.UNMASK)


def draw(rng: np.random.Generator, count: int, length: int) -> dict[str, np.ndarray]:
    """Returns vectors that fill the bound, by name."""
    limit = (2**63 - 1) // count
    return {f"c{place:02}": rng.integers(-limit, limit + 1, length) for place in range(count)}


def check(rng: np.random.Generator, count: int, length: int) -> int:
    """Runs a round with random drop-outs at each step, and returns how many clients had a vector."""
    vectors = draw(rng, count, length)
    names = list(vectors)
    most = rng.integers(0, count // 3 + 1)
    threshold = count - count // 3
    gone = list(rng.permutation(names)[:most])
    steps = rng.choice(list(Step), most)
    drops = {}
    for name, step in zip(gone, steps):
        drops.setdefault(Step(step), []).append(name)
    terms, clients = example(vectors, threshold=threshold, bound=(2**63 - 1) // count)
    server = Server(terms)
    total = run(server, clients, drops)
    expected = [name for name in names if name not in gone]
    for step in STAYS:
        expected += drops.get(step, [])
    assert server.survivors == tuple(sorted(expected))
    assert total.dtype == np.int64
    plain = [sum(int(vectors[name][entry]) for name in expected) for entry in range(length)]
    assert total.tolist() == plain
    assert set(server.dropped) == set(gone)
    return count


@pytest.mark.parametrize("seed", range(10))
def test_the_sum_is_the_plain_sum_whoever_drops_out(seed):
    rng = np.random.default_rng(seed)
    for _ in range(2):
        check(rng, int(rng.integers(3, 13)), 5)


def test_the_sum_of_fifty_clients_is_the_plain_sum_whoever_drops_out():
    check(np.random.default_rng(50), 50, 5)


@pytest.mark.slow
def test_a_thousand_sums_are_the_plain_sums():
    """A thousand rounds, of 3 to 50 clients each, with 0 to K / 3 drop-outs over all steps."""
    rng = np.random.default_rng(0)
    sizes = set()
    for _ in range(1000):
        # small rounds are quick: a tenth of all are of any size up to 50
        largest = 51 if rng.random() < 0.1 else 13
        sizes.add(check(rng, int(rng.integers(3, largest)), int(rng.integers(1, 40))))
    assert min(sizes) == 3
    assert max(sizes) > 45


@pytest.mark.parametrize("step", list(Step))
def test_one_drop_out_at_each_step_leaves_the_sum_of_the_others(step):
    vectors = {"c0": [1, -1], "c1": [10, 2**40], "c2": [100, 5], "c3": [1000, 7]}
    terms, clients = example(vectors)
    server = Server(terms)
    total = run(server, clients, {step: ["c1"]})
    kept = ["c0", "c2", "c3"] + ["c1"] * (step in STAYS)
    assert total.tolist() == np.sum([vectors[name] for name in kept], axis=0).tolist()
    assert server.dropped == {"c1": f"step {int(step)}: it did not answer."}


@pytest.mark.parametrize("step", list(Step))
def test_too_many_drop_outs_at_any_step_end_in_a_refusal_that_lists_them(step):
    terms, clients = example({"c0": [1], "c1": [2], "c2": [3], "c3": [4]})
    with pytest.raises(Refusal) as refused:
        run(Server(terms), clients, {step: ["c1", "c3"]})
    text = str(refused.value)
    assert f"2 of 4 clients are left in step {int(step)}, and the threshold is 3" in text
    assert "'c1', step" in text and "'c3', step" in text


def test_extreme_entries_are_exact():
    limit = (2**63 - 1) // 3
    terms, clients = example({f"c{place}": [limit, -limit] for place in range(3)}, bound=limit)
    assert run(Server(terms), clients).tolist() == [3 * limit, -3 * limit]


def planned_release(colluding: int = 0, sigma: float = 0.0) -> SharePlan:
    """Returns the noise of a release of two sums over three clients, none by default."""
    epsilon = 1 / sigma if sigma else math.inf
    return planned(
        Budget(epsilon, 1e-5),
        sigmas=(sigma, sigma),
        draws=8,
        clients=3,
        threshold=3,
        colluding=colluding,
    )


def carrier_of(*clients: str) -> Summation:
    return Summation("a release", dict.fromkeys(clients, OsEntropy()))


def test_a_release_of_several_sums_has_each_plain_sum_in_its_shape():
    carrier = carrier_of("c0", "c1", "c2")
    rng = np.random.default_rng(0)
    for number in (0, 1):
        vectors = {name: rng.integers(-9, 9, (2, 4)) for name in ("c0", "c1", "c2")}
        total = carrier.total(number, vectors, planned_release())
        assert total.dtype == np.int64
        np.testing.assert_array_equal(total, sum(vectors.values()))


def test_a_sum_of_a_release_is_made_once():
    carrier = carrier_of("c0", "c1", "c2")
    plan = planned_release(sigma=1.0)
    vectors = dict.fromkeys(("c0", "c1", "c2"), np.zeros(8, np.int64))
    carrier.total(0, vectors, plan)
    with pytest.raises(Refusal):
        carrier.total(0, vectors, plan)


def test_two_clients_are_too_few_for_a_release():
    vectors = dict.fromkeys(("c0", "c1"), np.zeros(8, np.int64))
    with pytest.raises(Refusal, match="needs 3 clients at least"):
        carrier_of("c0", "c1").total(0, vectors, planned_release())
