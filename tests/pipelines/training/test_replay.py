"""The recipe that trains on private and released images: its loss by hand, its draws, its schedules."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from pipelines.config.training import Replay
from pipelines.datasets.labelled_images import Images
from pipelines.training import pool, replay
from pipelines.training.pool import Pool
from pipelines.training.tensors import logits, state_of, tensors

CLASSES = 3


def made(count: int, seed: int, labels: list[int] | None = None) -> Images:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % CLASSES if labels is None else np.array(labels)
    pixels = rng.integers(0, 60, (count, 3, 3, 1)) + labels[:, None, None, None] * 80
    return Images(pixels.astype(np.uint8), labels, np.arange(count))


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(9, CLASSES)).double()


@pytest.fixture(autouse=True)
def in_double(monkeypatch):
    """Makes records float64, so that equalities are sharp."""

    def double(data, on="cpu"):
        images, labels = tensors(data, on)
        return images.double(), labels

    monkeypatch.setattr(replay, "tensors", double)
    monkeypatch.setattr(pool, "tensors", double)


def settings(**changes) -> Replay:
    schedule = {"from_labels": 0, "steps": 1, "learning_rate": 0.01, "synthetic_share": 0.5}
    schedule["synthetic_batch"] = 8
    base = {"batch": 64, "proximal": 0.0}
    return Replay.model_validate(
        {**base, "schedules": [{**schedule, **changes.pop("schedule", {})}], **changes}
    )


def fitted(records, pool, settings, seed=0) -> nn.Module:
    model = network()
    prior = replay.log_prior(records.labels, CLASSES)
    replay.fit(model, records, pool, prior=prior, settings=settings, seed=seed)
    return model


def adam_step(gradients, rate: float):
    """The first step of Adam: the rate along the sign of each gradient, but for its epsilon."""
    return [-rate * gradient / (gradient.abs() + 1e-8) for gradient in gradients]


def test_a_step_goes_along_the_gradient_of_the_formula():
    """(1 - lambda) CE(f(x) + log pi, y) + lambda CE(f(x'), y'), with the draw made again by hand."""
    records, pool = made(10, 1, [0] * 7 + [1] * 3), Pool(made(30, 2), None)
    asked = settings(schedule={"synthetic_share": 0.3})
    stream = torch.Generator().manual_seed(0)
    rows = torch.randperm(10, generator=stream)
    drawn, classes = pool.draw(8, stream)
    model = network()
    images, labels = replay.tensors(records)
    shares = torch.tensor([8 / 13, 4 / 13, 1 / 13], dtype=torch.float32)
    private = nn.functional.cross_entropy(model(images[rows]) + shares.log(), labels[rows])
    released = nn.functional.cross_entropy(model(drawn), classes)
    loss = 0.7 * private + 0.3 * released
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    after = fitted(records, pool, asked)
    for start, move, end in zip(
        network().parameters(), adam_step(gradients, 0.01), after.parameters()
    ):
        torch.testing.assert_close(end.data, start.data + move, atol=1e-9, rtol=0)


def test_the_pool_draws_every_class_alike_and_every_image_of_it():
    """Class 0 has 90 of 100 images, and a third of the draws."""
    data = made(100, 3, [0] * 90 + [1] * 6 + [2] * 4)
    pool = Pool(data, None)
    images, labels = pool.draw(30_000, torch.Generator().manual_seed(0))
    counts = np.bincount(labels.numpy(), minlength=3)
    assert counts == pytest.approx([10_000] * 3, abs=5 * math.sqrt(30_000 * 2 / 9))
    of_class_2 = images[labels == 2].flatten(1)
    _, often = torch.unique(of_class_2, dim=0, return_counts=True)
    assert len(often) == 4
    assert often.numpy() == pytest.approx([2_500] * 4, rel=0.1)


def test_a_class_that_no_client_released_is_never_drawn():
    pool = Pool(made(20, 4, [0] * 10 + [2] * 10), None)
    _, labels = pool.draw(500, torch.Generator().manual_seed(1))
    assert set(labels.tolist()) == {0, 2}


def test_the_schedule_is_the_last_that_begins_at_or_below_the_number_of_labels():
    schedules = [
        {"from_labels": 0, "steps": 0, "learning_rate": 0.1},
        {"from_labels": 8, "steps": 100, "learning_rate": 0.1},
        {"from_labels": 1000, "steps": 2000, "learning_rate": 0.1},
    ]
    asked = Replay.model_validate({"schedules": schedules})
    steps = [replay.schedule_of(asked, labels).steps for labels in (0, 7, 8, 999, 1000, 10**6)]
    assert steps == [0, 0, 100, 100, 2000, 2000]


@pytest.mark.parametrize("starts", [[], [8], [0, 8, 8], [0, 64, 8]])
def test_schedules_that_do_not_rise_from_nought_are_refused(starts):
    with pytest.raises(ValueError, match="begins with from_labels 0"):
        schedules = [{"from_labels": s, "steps": 1, "learning_rate": 0.1} for s in starts]
        Replay.model_validate({"schedules": schedules})


def test_without_steps_the_model_stays_as_it_was_handed_out():
    model = network()
    before = state_of(model)
    records = made(5, 5)
    prior = replay.log_prior(records.labels, CLASSES)
    asked = settings(schedule={"steps": 0})
    assert replay.fit(model, records, None, prior=prior, settings=asked, seed=0) == 0
    assert all(np.array_equal(array, before[name]) for name, array in state_of(model).items())


def test_without_released_images_a_proximal_term_keeps_the_weights_near():
    records = made(20, 6, [0] * 20)
    start = network()

    def moved(proximal: float) -> float:
        asked = settings(proximal=proximal, schedule={"steps": 200, "learning_rate": 0.05})
        pairs = zip(fitted(records, None, asked).parameters(), start.parameters())
        return sum((one - other).square().sum().item() for one, other in pairs)

    assert moved(10.0) < 0.2 * moved(0.0)


def test_training_alone_knows_no_prior_and_no_proximal_term():
    """Its first step is Adam's along the gradient of the cross-entropy as it is."""
    records = made(20, 6, [0] * 15 + [1] * 5)
    model = network()
    images, labels = replay.tensors(records)
    loss = nn.functional.cross_entropy(model(images), labels)
    steps = adam_step(torch.autograd.grad(loss, list(model.parameters())), 0.01)
    expected = [one.detach() + step for one, step in zip(model.parameters(), steps)]
    assert replay.fit_alone(model, records, settings(proximal=100.0), seed=0) == 1
    for found, wanted in zip(model.parameters(), expected):
        assert torch.allclose(found, wanted, atol=1e-9)


def test_released_images_keep_what_the_client_has_no_records_of():
    """A client of one class: without replay it forgets the others; with it, it does not."""
    data = made(90, 7)
    good = network()
    images, labels = replay.tensors(data)
    optimiser = torch.optim.Adam(good.parameters(), lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        nn.functional.cross_entropy(good(images), labels).backward()
        optimiser.step()
    records = made(30, 8, [0] * 30)
    everybody = made(60, 9)

    def accuracy(pool, share: float) -> float:
        model = network()
        model.load_state_dict(good.state_dict())
        prior = np.zeros(CLASSES, np.float32)
        schedule = {"steps": 300, "learning_rate": 0.05, "synthetic_share": share}
        replay.fit(model, records, pool, prior=prior, settings=settings(schedule=schedule), seed=0)
        pixels, classes = replay.tensors(everybody)
        return (logits(model, pixels).argmax(1) == classes).float().mean().item()

    assert accuracy(Pool(data, None), 0.5) > 0.9 > 0.6 > accuracy(None, 0.0)


def test_every_row_takes_its_turn_before_one_comes_again():
    stream = torch.Generator().manual_seed(0)
    batches = list(replay._batches(10, 4, 5, stream))
    assert [len(rows) for rows in batches] == [4] * 5
    rows = torch.cat(batches).tolist()
    assert sorted(rows[:10]) == sorted(rows[10:]) == list(range(10))


def test_the_same_seed_gives_the_same_bytes_and_another_one_other_draws():
    records, pool = made(40, 10), Pool(made(30, 11), None)
    asked = settings(batch=8, schedule={"steps": 5, "cosine": True})
    one, again, other = (state_of(fitted(records, pool, asked, seed)) for seed in (0, 0, 1))
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert any(not np.array_equal(one[name], other[name]) for name in one)
