import json
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from models import classifiers
from pipelines import methods
from pipelines.config import load
from pipelines.config.training import LocalSgd, NewClients, Nothing, Pooled, Replay
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from pipelines.federation import baselines
from pipelines.federation.core.task import Task
from pipelines.federation.home import new_clients
from pipelines.training import classifier
from pipelines.training.pool import Pool
from pipelines.training.tensors import state_of, tensors

NETWORK = partial(classifiers.build, "mlp", shape=(4, 4, 1), classes=3, seed=0)
TRAINING = {
    "random_init": Nothing(),
    "pooled": Pooled(steps=64, batch=10, learning_rate=0.01),
    "fedavg": LocalSgd(rounds=2, local_epochs=1, batch=10, learning_rate=0.1, momentum=0.0),
}
SYNTHETIC, PRIVATE = 1000, 5000  # where the ids begin


def made(count, seed, first_id):
    """Returns three classes that differ by their brightness."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    pixels = rng.integers(0, 60, (count, 4, 4, 1)) + labels[:, None, None, None] * 80
    return Images(pixels.astype(np.uint8), labels, np.arange(count) + first_id)


def task(names="abc"):
    data = {name: made(30, ord(name), SYNTHETIC * ord(name)) for name in names}
    return Task(data, NETWORK, None, {name: float(ord(name)) for name in names}, seed=0)


def settings(**changes):
    base = {"held_out": ["a", "b"], "labels": [4, 8], "draws": 2, "steps": 3, "learning_rate": 0.01}
    return NewClients.model_validate({**base, "algorithms": list(TRAINING), **changes})


def newcomers(names="ab", records=20):
    return {
        name: Shard(made(records, ord(name), PRIVATE), made(5, 50, PRIVATE), made(40, 60, PRIVATE))
        for name in names
    }


EVERYONE = made(60, 99, 0)


def study(given=None, homes=None, seed=0, **changes):
    return new_clients.study(
        given or task(),
        homes or newcomers(),
        EVERYONE,
        settings=settings(**changes),
        training=TRAINING,
        seed=seed,
    )


def cells(found):
    return {
        tuple(row[key] for key in ("algorithm", "client", "labels", "draw")): row
        for row in found.cells
    }


def test_a_cell_per_algorithm_client_number_of_labels_and_draw():
    assert set(cells(study())) == {
        (algorithm, client, *drawn)
        for algorithm in TRAINING
        for client in "ab"
        for drawn in [(0, 0), (4, 1), (4, 2), (8, 1), (8, 2)]
    }


def test_what_a_held_out_client_has_never_reaches_the_training(monkeypatch):
    """Its synthetic set, its epsilon and its private records stay out.

    The algorithms see the others' sets alone.
    """
    given, seen, trained = task(), [], baselines.trained

    def spy(algorithm, others, training, **kept):
        ids = {int(number) for data in others.data.values() for number in data.ids}
        seen.append((algorithm, frozenset(others.data), frozenset(others.epsilons), ids))
        return trained(algorithm, others, training, **kept)

    monkeypatch.setattr(baselines, "trained", spy)
    study(given)
    held_out = [client for client in "ab" for _ in TRAINING]
    assert [(algorithm, names, epsilons) for algorithm, names, epsilons, _ in seen] == [
        (algorithm, frozenset("abc") - {client}, frozenset("abc") - {client})
        for client, algorithm in zip(held_out, [*TRAINING] * 2, strict=True)
    ]
    for client, (*_, ids) in zip(held_out, seen, strict=True):
        assert not ids & set(given.data[client].ids.tolist())
        assert min(ids) >= SYNTHETIC * ord("a")  # and no private record is among them


def test_the_model_does_not_depend_on_the_held_out_client_s_set():
    """Every algorithm that may be named gives the same bytes, whatever that set holds."""
    params, given = load(), task()
    other = Task(
        {**given.data, "b": made(50, 1, 0)}, NETWORK, None, {**given.epsilons, "b": 99.0}, seed=0
    )
    for algorithm in ("pppfl", "fedmeta", "reptile", "pooled", "scaffold", "sda_fl"):
        block = getattr(
            params if algorithm == "pppfl" else params.baselines, methods.block(algorithm)
        )
        short = block.model_copy(
            update={"steps" if algorithm == "pooled" else "rounds": 2, "batch": 8}
        )
        one, same = (
            new_clients.shared_model(algorithm, new_clients.without(t, "b"), short)[0]
            for t in (given, other)
        )
        whole, _ = new_clients.shared_model(algorithm, given, short)
        assert all(one[name].tobytes() == same[name].tobytes() for name in one)
        assert any(
            one[name].tobytes() != whole[name].tobytes() for name in one
        )  # its set would have moved the model


def test_draws_are_nested_and_equal_over_algorithms(monkeypatch):
    seen, current, adapt, shared = {}, [], new_clients.adapt, new_clients.shared_model

    def training(algorithm, others, given, unfinished):
        current[:] = [algorithm, *sorted(set("abc") - set(others.data))]
        return shared(algorithm, others, given, unfinished)

    def spy(model, records, given):
        seen.setdefault(tuple(current), []).append(records.ids.tolist())
        adapt(model, records, given)

    monkeypatch.setattr(new_clients, "shared_model", training)
    monkeypatch.setattr(new_clients, "adapt", spy)
    study()
    for client in "ab":
        one, *others = (seen[algorithm, client] for algorithm in TRAINING)
        assert all(drawn == one for drawn in others)
        first, second, larger, _ = one  # 4 labels twice, then 8 twice
        assert set(first) < set(larger) and len(set(larger)) == 8
        assert first != second
        assert all(PRIVATE <= number < PRIVATE + 20 for drawn in one for number in drawn)
    assert seen["pooled", "a"] != seen["pooled", "b"]


def test_labelled_records_are_drawn_without_replacement_and_each_as_often():
    records = made(10, 0, 0)
    counts = sum(
        np.bincount(new_clients.labelled(records, 4, seed).ids, minlength=10) for seed in range(500)
    )
    assert counts.sum() == 2000
    assert abs(counts - 200).max() < 60  # a standard deviation is 11


def test_adaptation_is_that_many_steps_of_adam_on_all_records():
    """The oracle is a linear model by hand: gradients of the mean cross-entropy, and moments with
    their bias undone.
    """
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    records, given = made(7, 3, 0), settings(steps=5, learning_rate=0.03)
    images, labels = tensors(records)
    x = np.hstack([images.numpy().reshape(7, 16), np.ones((7, 1))])
    weights = np.hstack(
        [model[1].weight.detach().numpy(), model[1].bias.detach().numpy()[:, None]]
    ).astype(float)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, 6):
        logits = x @ weights.T
        soft = np.exp(logits - logits.max(1, keepdims=True))
        gradient = (soft / soft.sum(1, keepdims=True) - np.eye(3)[labels.numpy()]).T @ x / 7
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        weights -= 0.03 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    new_clients.adapt(model, records, given)
    assert model[1].weight.detach().numpy() == pytest.approx(weights[:, :16], abs=1e-5)
    assert model[1].bias.detach().numpy() == pytest.approx(weights[:, 16], abs=1e-5)


def test_without_labels_it_is_the_model_as_it_was_handed_out_and_every_draw_starts_from_it():
    given = new_clients.without(task(), "a")
    model, _ = new_clients.shared_model("pooled", given, TRAINING["pooled"])
    before = {name: array.copy() for name, array in model.items()}
    rows = list(
        new_clients.few_labels(
            model,
            newcomers()["a"],
            EVERYONE,
            build=NETWORK,
            settings=settings(learning_rate=1e-9),
            seed=0,
        )
    )
    assert all(np.array_equal(model[name], before[name]) for name in model)
    scores = ("accuracy", "macro_f1", "global_accuracy", "global_macro_f1")
    assert (
        len({tuple(row[score] for score in scores) for row in rows}) == 1
    )  # no step: the same model in every cell
    assert rows[0]["global_accuracy"] > 0.8  # the others' sets taught it


def test_more_labels_teach_an_untrained_model_more():
    found = cells(study(labels=[2, 16], steps=60))
    few, many = (
        np.mean([found["random_init", c, k, d]["global_accuracy"] for c in "ab" for d in (1, 2)])
        for k in (2, 16)
    )
    assert many > few + 0.1


def test_the_order_of_clients_does_not_matter_and_the_same_seed_gives_the_same_bytes():
    first, again = study(), study()
    other = study(task("cab"), dict(reversed(newcomers().items())))
    assert json.dumps(first.cells) == json.dumps(again.cells) == json.dumps(other.cells)
    assert json.dumps(study(seed=1).cells) != json.dumps(first.cells)


def test_a_client_with_too_few_records_skips_those_numbers_and_says_so():
    homes = {**newcomers("a", records=8), **newcomers("b", records=7)}
    found = study(homes=homes)
    assert found.skipped == [{"client": "b", "labels": 8, "records": 7}]
    assert {(row["client"], row["labels"]) for row in found.cells} == {
        ("a", 0),
        ("a", 4),
        ("a", 8),
        ("b", 0),
        ("b", 4),
    }


def test_one_client_may_be_all_that_is_left_and_costs_are_those_of_the_others():
    found = study(task("ab"))
    costs = {(row["algorithm"], row["client"]): row for row in found.costs}
    size = sum(array.nbytes for array in state_of(NETWORK()).values())
    assert costs["fedavg", "a"]["bytes_up"] == 2 * size  # two rounds, one client
    assert costs["random_init", "b"]["bytes_up"] == 0
    assert all(row["seconds_at_home"] > 0 for row in found.costs)


def test_nobody_held_out_is_nothing_to_do():
    assert new_clients.study(
        task(), {}, EVERYONE, settings=settings(held_out=[]), training=TRAINING, seed=0
    ) == (
        [],
        [],
        [],
    )


def of_class_0(count, seed):
    many = made(6 * count, seed, 0)
    return many[np.flatnonzero(many.labels == 0)[:count]]


def test_with_replay_a_new_client_keeps_what_it_has_no_label_of():
    """Its few labels are of one class; the released images are of all."""
    released = made(300, 1, 0)
    shared = NETWORK()
    classifier.fit(shared, released, epochs=30, batch=32, learning_rate=0.02, seed=0)
    shard = Shard(of_class_0(40, 2), of_class_0(10, 3), of_class_0(30, 4))
    schedule = {"from_labels": 0, "steps": 100, "learning_rate": 0.01, "synthetic_share": 0.5}
    recipe = Replay.model_validate({"schedules": [schedule]})
    scored = {}
    for name, asked in (("plain", None), ("replay", (recipe, Pool(released, None)))):
        _, scored[name] = new_clients.few_labels(
            state_of(shared),
            shard,
            made(300, 5, 0),
            build=NETWORK,
            settings=settings(labels=[8], draws=1, steps=300),
            seed=0,
            recipe=asked,
        )
    assert scored["replay"]["accuracy"] == scored["plain"]["accuracy"] == 1.0
    assert scored["replay"]["global_accuracy"] > 0.95
    assert scored["replay"]["global_accuracy"] > scored["plain"]["global_accuracy"]


def test_a_study_with_replay_draws_from_the_others_sets_alone(monkeypatch):
    """The new client's own released set is in no pool, and an untrained start has no pool at all."""
    seen = []
    real = new_clients.released_pool
    monkeypatch.setattr(
        new_clients,
        "released_pool",
        lambda sets, *more: seen.append(sorted(sets)) or real(sets, *more),
    )
    recipe = Replay.model_validate(
        {"schedules": [{"from_labels": 0, "steps": 2, "learning_rate": 0.01}]}
    )
    found = new_clients.study(
        task(),
        newcomers(),
        EVERYONE,
        settings=settings(recipe="replay"),
        training=TRAINING,
        seed=0,
        replay=recipe,
    )
    assert seen == [["b", "c"]] * 2 + [["a", "c"]] * 2
    assert len(found.cells) == len(study().cells)
