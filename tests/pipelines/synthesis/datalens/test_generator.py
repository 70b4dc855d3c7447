"""Tests `datalens`: only noisy votes reach the generator, and what it makes of them repeats."""

import math

import numpy as np
import pytest
import torch

from pipelines.datasets.labelled_images import Images
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import SeededForTests
from pipelines.synthesis.datalens import ensemble, student, votes
from pipelines.synthesis.datalens import generator as datalens


def test_every_step_adds_the_planned_noise_once(records, small_space, planned, noise_spy):
    plan = planned(small_space, steps=4)
    datalens.fit(records(12, small_space), plan, noise_spy, seed=1)
    details = plan.statement.details
    assert noise_spy.calls == [((3, 30), details["sigma"] * details["lattice_steps_per_vote"])] * 4


@pytest.fixture
def watched(monkeypatch):
    """Collects the ballots [N, B, d] of every step of a fit."""
    seen = []
    vote = votes.vote
    monkeypatch.setattr(votes, "vote", lambda *a, **k: seen.append(vote(*a, **k)) or seen[-1])
    return seen


def test_removing_any_record_moves_the_first_votes_within_the_sensitivity(
    records, small_space, planned, watched
):
    """The test runs the whole of `fit`: map, warm-up, gradients and votes.

    Later steps differ by the released noise alone.
    """
    plan = planned(small_space, steps=1, teacher_warmup=4, learning_rate=0.05)
    data = records(10, small_space)
    datalens.fit(data, plan, SeededForTests(0), seed=1)
    moved = []
    for record in range(len(data)):
        datalens.fit(data[np.delete(np.arange(10), record)], plan, SeededForTests(0), seed=1)
        assert (watched[0] != watched[-1]).flatten(1).any(1).sum() <= 1
        moved.append(np.linalg.norm(votes.tally(watched[0]) - votes.tally(watched[-1])))
    assert 0 < max(moved) <= plan.statement.details["sensitivity"]


def test_teachers_without_records_still_vote(records, small_space, planned, watched):
    plan = planned(small_space, teachers=40, steps=2)
    datalens.fit(records(5, small_space), plan, SeededForTests(0), seed=1)
    assert sum(len(ballots) for ballots in watched) == 2 * 40  # block by block
    for ballots in watched:
        assert torch.all((ballots != 0).sum(-1) == 4)


def test_missing_classes_and_an_empty_shard_are_no_special_case(records, small_space, planned):
    plan = planned(small_space)
    for data in (records(9, small_space, labels=[1] * 9), records(1, small_space)[:0]):
        state = datalens.fit(data, plan, SeededForTests(0), seed=1)
        assert all(np.isfinite(array).all() for array in state.values())
        np.testing.assert_allclose(state["histogram"], 1 / 3)  # the shard's own labels do not show


def test_the_generator_sees_the_shard_through_noisy_votes_only(
    monkeypatch, records, small_space, planned
):
    """With the release replaced by a constant, two different shards give the same generator, bit for bit."""
    monkeypatch.setattr(datalens, "release", lambda total, **_: np.ones(total.shape))
    plan = planned(small_space)
    one, two = (
        datalens.fit(records(count, small_space, seed=seed), plan, SeededForTests(0), seed=1)
        for count, seed in ((8, 1), (15, 2))
    )
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_same_seed_same_bytes_with_test_noise_and_other_noise_differs(
    records, small_space, planned, as_bytes
):
    plan, data = planned(small_space), records(12, small_space)

    def weights(noise):
        return as_bytes(datalens.fit(data, plan, noise, seed=1))

    assert weights(SeededForTests(0)) == weights(SeededForTests(0)) != weights(SeededForTests(1))


@pytest.mark.parametrize("batch", [2, 3, 4])
def test_labels_in_turn_ask_one_fake_of_every_class_before_any_twice(
    monkeypatch, records, small_space, planned, batch
):
    """With three classes, counts over steps never differ by more than one, for any batch."""
    asked, poll = [], ensemble.Ensemble.poll
    monkeypatch.setattr(
        ensemble.Ensemble,
        "poll",
        lambda self, x, labels, n: asked.append(labels) or poll(self, x, labels, n),
    )
    plan = planned(small_space, steps=5, batch=batch)
    datalens.fit(records(12, small_space), plan, SeededForTests(0), seed=1)
    np.testing.assert_array_equal(np.concatenate(asked), np.arange(5 * batch) % 3)


def test_votes_are_smoothed_after_their_noise(monkeypatch, records, small_space, planned):
    """Smoothing is post-processing.

    All votes get noise, and their low frequencies move the fakes.
    """
    released, used = [], []
    target, draw = student.target, datalens.release
    monkeypatch.setattr(
        datalens, "release", lambda *a, **k: released.append(draw(*a, **k)) or released[-1]
    )
    monkeypatch.setattr(student, "target", lambda *a: used.append(a[1]) or target(*a))
    plan = planned(small_space, vote_cutoff=2)
    datalens.fit(records(12, small_space), plan, SeededForTests(0), seed=1)
    for before, after in zip(released, used, strict=True):
        np.testing.assert_array_equal(after, votes.smoothed(before, 2, small_space.shape))
        assert not np.allclose(before, after)


def test_the_map_to_teachers_reads_ids_and_nothing_else(
    monkeypatch, records, small_space, datalens_settings
):
    """Other labels and other pixels under the same ids have the same owners."""
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
    assert np.array_equal(
        owners[0], real(shard.ids, plan.settings.teachers, (1).to_bytes(8, "big"))
    )


@pytest.mark.slow
def test_neither_threads_nor_processes_change_a_byte(
    monkeypatch, records, small_space, planned, as_bytes
):
    plan = planned(small_space, teachers=40, teacher_network="compact", generator_network="paper")
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
def test_every_pair_of_networks_trains_and_samples(
    records, small_space, planned, teacher, generator
):
    plan = planned(small_space, teacher_network=teacher, generator_network=generator)
    state = datalens.fit(records(12, small_space), plan, SeededForTests(0), seed=1)
    images = datalens.sample(state, 30, seed=0)
    assert images.images.shape == (30, *small_space.shape) and images.images.std() > 0


def test_the_progress_line_says_signal_and_cost(small_space, planned):
    plan = planned(small_space, steps=4)
    sigma = plan.statement.details["sigma"]
    noisy = np.random.default_rng(0).normal(0, 1, (3, 1000)) * sigma
    last = datalens._progress(4, noisy * 2, plan)
    assert float(last.split()[1].rstrip(",")) == pytest.approx(math.sqrt(3), abs=0.05)
    assert float(last.split()[-1]) == pytest.approx(10.0, abs=0.01)
    halfway = datalens._progress(2, noisy, plan)
    assert float(halfway.split()[1].rstrip(",")) < 0.3 and 5 < float(halfway.split()[-1]) < 8
