"""`datalens`: the plan's arithmetic, its refusals, and that only noisy votes reach the generator."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.config import Datalens
from pipelines.datasets.containers import Images
from pipelines.errors import UserError
from pipelines.privacy import accounting
from pipelines.privacy.gaussian import Budget
from pipelines.privacy.noise import OsEntropy, SeededForTests
from pipelines.synthesis import datalens, neural, votes
from pipelines.synthesis.registry import Space, Where
from pipelines.synthesis.teachers import ensemble, journal

BUDGET = Budget(10.0, 1e-5)
MNIST = Space(28, 28, 1, 10)


@settings(deadline=None, max_examples=40)
@given(
    epsilon=st.floats(0.1, 25),
    k=st.integers(1, 300),
    batch=st.integers(1, 30),
    steps=st.integers(1, 400),
)
def test_the_planned_steps_spend_exactly_the_budget(epsilon, k, batch, steps):
    block = Datalens(**{**BASE, "top_k": k, "batch": batch, "steps": steps})
    budget = Budget(epsilon, 1e-5)
    details = datalens.plan(block, budget, MNIST).statement.details
    assert details["sigma"] == pytest.approx(2 * math.sqrt(k * batch * steps) / budget.mu)
    per_image = 2 * math.sqrt(k) / details["sigma"]
    spent = accounting.compose([per_image] * (batch * steps))  # every fake image is a query of its own
    assert spent == pytest.approx(budget.mu, rel=1e-9)
    lattice = details["sigma"] * details["lattice_steps_per_vote"]
    slack = accounting.rounding_slack(epsilon=epsilon, sigma=lattice, draws=batch * steps * 784)
    assert accounting.gdp_delta(epsilon=epsilon, mu=spent) + slack <= 1e-5 * (1 + 1e-7)


BASE = {
    "teachers": 1000,
    "teacher_network": "mlp",
    "generator_network": "mlp",
    "steps": 100,
    "batch": 10,
    "top_k": 50,
    "clip": 1e-5,
    "stochastic": True,
    "threshold": None,
    "vote_cutoff": None,
    "labels": "in_turn",
    "wrong_labels": True,
    "teacher_steps": 2,
    "teacher_warmup": 10,
    "generator_steps": 5,
    "step_length": 0.1,
    "learning_rate": 1e-3,
    "generator_learning_rate": 1e-3,
    "teacher_hidden": 8,
    "latent": 4,
    "weak_plan": "warn",
}


@pytest.mark.parametrize(
    "k, batch, a, teachers, steps",
    [
        (1, 10, 0.2, 50, 10),
        (1, 10, 0.5, 1000, 25011),
        (5, 10, 0.2, 400, 128),
        (20, 10, 0.2, 50, 0),
        (20, 10, 0.2, 1000, 200),
        (50, 15, 0.5, 4000, 5335),
        (200, 15, 0.2, 4000, 213),
        (200, 15, 1.0, 100, 3),
        (200, 15, 1.0, 400, 53),
        (200, 15, 1.0, 4000, 5335),
    ],
)
def test_affordable_steps_golden_values(k, batch, a, teachers, steps):
    """The table's column of exact GDP at epsilon 10. Ours is a = sigma / N = 1: `a` of N teachers is 1 of a N."""
    block = Datalens(**{**BASE, "top_k": k, "batch": batch, "teachers": round(a * teachers)})
    affordable = datalens.plan(block, BUDGET, MNIST).statement.details["steps_affordable_at_sigma_N_1"]
    assert steps * 0.999 - 1 <= affordable <= steps  # a thousandth of delta is the lattice's


@pytest.mark.parametrize(
    "k, batch, steps, epsilon, teachers, ratio",
    [
        (10, 10, 100, 10, 100, 1.00),
        (50, 10, 100, 10, 1000, 0.22),
        (50, 15, 200, 10, 287, 1.35),
        (50, 10, 100, 3, 400, 1.55),
        (50, 10, 100, 1, 4000, 0.42),
        (300, 15, 110, 10, 4000, 0.18),
    ],
)
def test_noise_per_teacher_golden_values(k, batch, steps, epsilon, teachers, ratio):
    block = Datalens(**{**BASE, "top_k": k, "batch": batch, "steps": steps, "teachers": teachers})
    details = datalens.plan(block, Budget(epsilon, 1e-5), MNIST).statement.details
    assert details["sigma_over_N"] == pytest.approx(ratio, abs=0.0051)


def test_a_working_plan_is_not_weak_under_either_policy():
    for policy in ("refuse", "warn"):
        assert datalens.plan(Datalens(**{**BASE, "weak_plan": policy}), BUDGET, MNIST).weak == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"teachers": 24},  # nothing to buy
        {"steps": 2100},  # 2000 are affordable
        {"teachers": 150, "steps": 40},  # quiet enough, but 45 steps are all that could be bought
    ],
)
def test_a_weak_plan_refuses_with_what_would_work_or_warns(changes):
    with pytest.raises(UserError) as refusal:
        datalens.plan(Datalens(**{**BASE, "weak_plan": "refuse", **changes}), Budget(10.0, 1e-5), MNIST)
    for word in ("steps", "sigma/N", "dp_moments", "teachers", "epsilon", "weak_plan"):
        assert word in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert datalens.plan(Datalens(**{**BASE, "weak_plan": "warn", **changes}), BUDGET, MNIST).weak


def test_more_votes_than_pixels_is_one_sentence():
    with pytest.raises(UserError, match=r"'top_k' parameter .* at most the 784 pixels .* Got 785 instead"):
        datalens.plan(Datalens(**{**BASE, "top_k": 785}), BUDGET, MNIST)


def test_infinite_budget_has_no_noise_and_no_guarantee():
    plan = datalens.plan(Datalens(**{**BASE, "weak_plan": "refuse"}), Budget(math.inf, 1e-5), MNIST)
    assert plan.statement.details["sigma"] == 0 and plan.statement.guarantee == "none" and plan.weak == ()


def test_the_papers_accountant_is_printed_and_is_never_the_claim():
    statement = datalens.plan(Datalens(**BASE), Budget(3.0, 1e-5), MNIST).statement
    assert statement.epsilon == 3.0
    assert statement.details["epsilon_by_the_papers_accountant"] > 3.0


def planned(datalens_settings, space, **changes):
    return datalens.plan(datalens_settings(**changes), BUDGET, space)


def test_every_step_adds_the_planned_noise_once(records, small_space, datalens_settings, noise_spy):
    plan = planned(datalens_settings, small_space, steps=4)
    datalens.fit(records(12, small_space), plan, noise_spy, seed=1)
    details = plan.statement.details
    assert noise_spy.calls == [((3, 30), details["sigma"] * details["lattice_steps_per_vote"])] * 4


@pytest.fixture
def watched(monkeypatch):
    """The ballots [N, B, d] of every step of a fit."""
    seen = []
    vote = votes.vote
    monkeypatch.setattr(votes, "vote", lambda *a, **k: seen.append(vote(*a, **k)) or seen[-1])
    return seen


def test_removing_any_record_moves_the_first_votes_within_the_sensitivity(
    records, small_space, datalens_settings, watched
):
    """Through the whole of `fit`: map, warm-up, gradients, votes. Later steps differ by the released noise alone."""
    plan = planned(datalens_settings, small_space, steps=1, teacher_warmup=4, learning_rate=0.05)
    data = records(10, small_space)
    datalens.fit(data, plan, SeededForTests(0), seed=1)
    moved = []
    for record in range(len(data)):
        datalens.fit(data[np.delete(np.arange(10), record)], plan, SeededForTests(0), seed=1)
        assert (watched[0] != watched[-1]).flatten(1).any(1).sum() <= 1
        moved.append(np.linalg.norm(votes.tally(watched[0]) - votes.tally(watched[-1])))
    assert 0 < max(moved) <= plan.statement.details["sensitivity"]


def test_teachers_without_records_still_vote(records, small_space, datalens_settings, watched):
    plan = planned(datalens_settings, small_space, teachers=40, steps=2)
    datalens.fit(records(5, small_space), plan, SeededForTests(0), seed=1)
    assert sum(len(ballots) for ballots in watched) == 2 * 40  # block by block
    for ballots in watched:
        assert torch.all((ballots != 0).sum(-1) == 4)


def test_missing_classes_and_an_empty_shard_are_no_special_case(records, small_space, datalens_settings):
    plan = planned(datalens_settings, small_space)
    for data in (records(9, small_space, labels=[1] * 9), records(1, small_space)[:0]):
        state = datalens.fit(data, plan, SeededForTests(0), seed=1)
        assert all(np.isfinite(array).all() for array in state.values())
        np.testing.assert_allclose(state["histogram"], 1 / 3)  # the shard's own labels do not show


def test_the_generator_sees_the_shard_through_noisy_votes_only(monkeypatch, records, small_space, datalens_settings):
    """With the release replaced by a constant, two different shards give the same generator, bit for bit."""
    monkeypatch.setattr(datalens, "release", lambda total, **_: np.ones(total.shape))
    plan = planned(datalens_settings, small_space)
    one, two = (
        datalens.fit(records(count, small_space, seed=seed), plan, SeededForTests(0), seed=1)
        for count, seed in ((8, 1), (15, 2))
    )
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_same_seed_same_bytes_with_test_noise_and_other_noise_differs(records, small_space, datalens_settings):
    plan, data = planned(datalens_settings, small_space), records(12, small_space)

    def weights(noise):
        state = datalens.fit(data, plan, noise, seed=1)
        return b"".join(state[name].tobytes() for name in sorted(state))

    assert weights(SeededForTests(0)) == weights(SeededForTests(0)) != weights(SeededForTests(1))


@pytest.mark.parametrize("batch", [2, 3, 4])
def test_labels_in_turn_ask_one_fake_of_every_class_before_any_twice(
    monkeypatch, records, small_space, datalens_settings, batch
):
    """Three classes: over steps, whatever the batch, counts never differ by more than one."""
    asked, poll = [], ensemble.Ensemble.poll
    monkeypatch.setattr(
        ensemble.Ensemble, "poll", lambda self, x, labels, n: asked.append(labels) or poll(self, x, labels, n)
    )
    plan = planned(datalens_settings, small_space, steps=5, batch=batch)
    datalens.fit(records(12, small_space), plan, SeededForTests(0), seed=1)
    np.testing.assert_array_equal(np.concatenate(asked), np.arange(5 * batch) % 3)


def test_votes_are_smoothed_after_their_noise(monkeypatch, records, small_space, datalens_settings):
    """Post-processing: what is noised are all votes, what moves the fakes their low frequencies."""
    released, used = [], []
    target, draw = datalens._target, datalens.release
    monkeypatch.setattr(datalens, "release", lambda *a, **k: released.append(draw(*a, **k)) or released[-1])
    monkeypatch.setattr(datalens, "_target", lambda *a: used.append(a[1]) or target(*a))
    plan = planned(datalens_settings, small_space, vote_cutoff=2)
    datalens.fit(records(12, small_space), plan, SeededForTests(0), seed=1)
    for before, after in zip(released, used, strict=True):
        np.testing.assert_array_equal(after, votes.smoothed(before, 2, small_space.shape))
        assert not np.allclose(before, after)


def test_targets_move_each_image_by_the_step_length_along_its_votes():
    images, direction = torch.rand(2, 1, 2, 3), np.array([[3.0, 0, 0, -4.0, 0, 0], [0.0] * 6])
    move = (datalens._target(images, direction, 0.25) - images).flatten(1)
    assert move[0].square().mean().sqrt().item() == pytest.approx(0.25, rel=1e-5)
    assert torch.nn.functional.cosine_similarity(move[0], torch.tensor(direction[0]).float(), dim=0) > 0.9999
    assert not move[1].any()  # nobody voted: it stays, without a division by zero


def test_unanimous_noiseless_votes_pull_the_generator_along(small_space, datalens_settings):
    block = datalens_settings(generator_steps=50, generator_learning_rate=1e-2)
    generator = neural.generator("mlp", small_space, latent=4, seed=0)
    optimiser = torch.optim.Adam(generator.parameters(), lr=1e-2)
    z, labels = generator.draw(3, torch.Generator().manual_seed(0))
    before = generator(z, labels).detach()
    datalens._follow(generator, optimiser, z, labels, (before + 0.2).clamp(0, 1), block)
    assert (generator(z, labels) - before).mean() > 0.1


def test_the_map_to_teachers_reads_ids_and_nothing_else(monkeypatch, records, small_space, datalens_settings):
    """Other labels and other pixels under the same ids: the same owners."""
    owners = []
    real = votes.assign

    def watched(ids, teachers, key):
        owners.append(real(ids, teachers, key))
        return owners[-1]

    monkeypatch.setattr(datalens.votes, "assign", watched)
    shard = records(30, small_space)
    other = Images(255 - shard.images, (shard.labels + 1) % small_space.classes, shard.ids)
    plan = datalens.plan(datalens_settings(), Budget(10.0, 1e-5), small_space)
    for data in (shard, other):
        datalens.fit(data, plan, SeededForTests(0), 1)
    assert np.array_equal(*owners)
    assert np.array_equal(owners[0], real(shard.ids, plan.settings.teachers, (1).to_bytes(8, "big")))


class Killed(SeededForTests):
    """Seeded noise; the run dies at draw `at`, counted from its own start."""

    def __init__(self, at: int):
        super().__init__(3)
        self.left = at

    def discrete_gaussian(self, shape, sigma):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().discrete_gaussian(shape, sigma)


def as_bytes(state) -> bytes:
    return b"".join(state[name].tobytes() for name in sorted(state))


@pytest.mark.parametrize("kills", [[0], [3], [4], [7], [9], [2, 2, 3], [5, 1]])
@pytest.mark.parametrize("stochastic, generator", [(True, "mlp"), (False, "conv")])
def test_a_killed_run_ends_in_the_same_bytes(
    monkeypatch, tmp_path, records, small_space, datalens_settings, kills, stochastic, generator
):
    """Killed before, at and after checkpoints, and more than once."""
    monkeypatch.setattr(journal, "EVERY", 4)
    plan = planned(
        datalens_settings, small_space, steps=10, teachers=20, stochastic=stochastic, generator_network=generator
    )
    data = records(30, small_space)
    expected = as_bytes(datalens.fit(data, plan, SeededForTests(3), seed=1))
    where = Where(unfinished=tmp_path / "unfinished")
    done = 0
    for at in kills:
        with pytest.raises(KeyboardInterrupt):
            datalens.fit(data, plan, Killed(done + at), 1, where)  # the draws it skips count too
        done += at
    assert as_bytes(datalens.fit(data, plan, SeededForTests(3), 1, where)) == expected


def test_a_killed_run_never_releases_a_step_twice(monkeypatch, tmp_path, records, small_space, datalens_settings):
    """With noise from the operating system: one draw per step over all runs, and the votes of before are used."""
    monkeypatch.setattr(journal, "EVERY", 3)
    plan, data = planned(datalens_settings, small_space, steps=8), records(12, small_space)
    where, drawn, used = Where(unfinished=tmp_path / "unfinished"), [], []

    class Dying(OsEntropy):
        def discrete_gaussian(self, shape, sigma):
            drawn.append(super().discrete_gaussian(shape, sigma))
            return drawn[-1]

    target = datalens._target

    def watched(fakes, direction, step_length):
        used.append(direction)
        if len(used) == 5:
            raise KeyboardInterrupt
        return target(fakes, direction, step_length)

    monkeypatch.setattr(datalens, "_target", watched)
    with pytest.raises(KeyboardInterrupt):
        datalens.fit(data, plan, Dying(), 1, where)
    datalens.fit(data, plan, Dying(), 1, where)
    assert len(drawn) == 8
    first, second = used[:5], used[5:]  # the second run starts after the checkpoint at 3
    assert len(second) == 5
    for before, again in zip(first[3:], second):
        np.testing.assert_array_equal(before, again)


def test_neither_threads_nor_processes_change_a_byte(monkeypatch, records, small_space, datalens_settings):
    plan = planned(datalens_settings, small_space, teachers=40, teacher_network="compact", generator_network="paper")
    data, seen = records(60, small_space), set()
    for workers, threads in (("1", 1), ("1", 2), ("2", 1), ("3", 2)):
        monkeypatch.setenv("FEDLENS_WORKERS", workers)
        torch.set_num_threads(threads)
        seen.add(as_bytes(datalens.fit(data, plan, SeededForTests(0), seed=1)))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(1)
    assert len(seen) == 1


@pytest.mark.parametrize("teacher", ["mlp", "compact", "paper"])
@pytest.mark.parametrize("generator", ["mlp", "paper", "conv"])
def test_every_pair_of_networks_trains_and_samples(records, small_space, datalens_settings, teacher, generator):
    plan = planned(datalens_settings, small_space, teacher_network=teacher, generator_network=generator)
    state = datalens.fit(records(12, small_space), plan, SeededForTests(0), seed=1)
    images = datalens.sample(state, 30, seed=0)
    assert images.images.shape == (30, *small_space.shape) and images.images.std() > 0


def test_the_progress_line_says_signal_and_cost(small_space, datalens_settings):
    plan = planned(datalens_settings, small_space, steps=4)
    sigma = plan.statement.details["sigma"]
    noisy = np.random.default_rng(0).normal(0, 1, (3, 1000)) * sigma
    last = datalens._progress(4, noisy * 2, plan)
    assert float(last.split()[1].rstrip(",")) == pytest.approx(math.sqrt(3), abs=0.05)
    assert float(last.split()[-1]) == pytest.approx(10.0, abs=0.01)
    halfway = datalens._progress(2, noisy, plan)
    assert float(halfway.split()[1].rstrip(",")) < 0.3 and 5 < float(halfway.split()[-1]) < 8
