"""The cells of personalisation: who has which labels, and no test image in development."""

import numpy as np
import pytest
import torch

from benchmarks import client_draws, joint_sums, personalisation, shared_models
from benchmarks.client_draws import NEWCOMERS, REGIMES, USUAL
from pipelines import config
from pipelines.datasets.labelled_images import Images
from pipelines.training.tensors import state_of

FEDERATED = REGIMES[USUAL].federated


def test_newcomers_have_few_labels_and_federated_clients_all():
    keys = personalisation.wanted("digits", 0, ["pooled"], ["plain", "replay"], ["8", "all"])
    clients = {
        label: {key["client"] for key in keys if key["labels"] == label} for label in ("8", "all")
    }
    assert clients == {"8": set(NEWCOMERS), "all": set(FEDERATED)}
    assert len(keys) == 3 * (3 + 5) + 5
    controls = [key for key in keys if key["recipe"] == "pair"]
    assert {key["labels"] for key in controls} == {"all"}


def test_a_regime_of_many_clients_scores_the_first_of_them():
    keys = personalisation.wanted("mnist", 0, ["pooled"], ["replay"], ["all"], "50x200")
    assert {key["client"] for key in keys} == {f"c{number}" for number in range(10)}
    budgets = REGIMES["mixed"].budgets
    assert list(budgets.values()) == [1.0, 3.0, 5.0, 8.0, 10.0]


def test_training_alone_is_measured_first_whatever_is_asked_for():
    keys = personalisation.wanted("digits", 0, ["pooled"], ["replay"], ["8"])
    assert [(key["start"], key["recipe"]) for key in keys[:3]] == [("random", "alone")] * 3


@pytest.fixture
def clients(tmp_path, monkeypatch):
    """Returns a development draw of clients with images of ten greys."""
    monkeypatch.setattr(client_draws, "SCRATCH", tmp_path)
    rng = np.random.default_rng(0)
    labels = np.arange(1400) % 10
    pixels = rng.integers(0, 40, (1400, 8, 8, 1)) + labels[:, None, None, None] * 20
    train = Images(pixels.astype(np.uint8), labels, np.arange(1400))

    def drawn(params: config.Params, regime: str = USUAL) -> client_draws.ClientDraw:
        return client_draws.draw(params, "digits", 100, train, None, REGIMES[regime])

    return drawn


def test_in_development_the_global_images_come_from_the_training_images(clients):
    params = config.load()
    drawn = clients(params)
    everyone = set(drawn.everyone.ids.tolist())
    assert len(everyone) == client_draws.HELD_OUT["digits"]
    for shard in drawn.shards.values():
        for part in (shard.train, shard.validation, shard.test):
            assert not everyone & set(part.ids.tolist())


def test_a_joint_release_is_made_once_for_all_clients(clients, monkeypatch):
    calls = []
    make = joint_sums.fitted
    monkeypatch.setattr(joint_sums, "fitted", lambda *known: calls.append(known) or make(*known))
    params = config.load()
    apart = clients(params, "5-at-1")
    assert not calls
    drawn = clients(params, "5-at-1-joint")
    again = clients(params, "5-at-1-joint")
    (known,) = calls
    group, parts = known[4], known[5]
    assert (group.clients, group.colluding) == (5, 2)
    for part, client in zip(parts, drawn.regime.federated, strict=True):
        assert np.array_equal(part.images, drawn.shards[client].train.images)
        assert np.array_equal(part.images, apart.shards[client].train.images)
        assert np.array_equal(drawn.sets[client].images, again.sets[client].images)
    assert len({images.images.tobytes() for images in drawn.sets.values()}) == 5
    # one lost file would otherwise mix two releases
    for path in client_draws.SCRATCH.rglob("c3.npz"):
        path.unlink()
    anew = clients(params, "5-at-1-joint")
    assert len(calls) == 2
    assert not np.array_equal(drawn.sets["c0"].images, anew.sets["c0"].images)


def test_a_release_is_found_again_and_never_under_other_settings(clients):
    """Noise is from the operating system: what is made anew differs."""
    params = config.load()
    first, again = clients(params), clients(params)
    profile = params.profiles["digits"].model_copy(update={"images": 300})
    changed = params.model_copy(update={"profiles": {**params.profiles, "digits": profile}})
    other = clients(changed)
    for client in FEDERATED:
        assert np.array_equal(first.sets[client].images, again.sets[client].images)
        assert not np.array_equal(first.sets[client].images, other.sets[client].images)


def test_the_control_of_a_mean_is_two_models_trained_alone(clients):
    drawn = clients(config.load())
    key = {"client": "c0", "labels": "all", "start": "random", "recipe": "pair"}
    records = personalisation.labelled(drawn, "c0", "all")
    initial = shared_models.trained(drawn, "random")
    beside = {}
    personal = personalisation.tuned(drawn, initial, key, records, drawn.pool, beside)
    assert personal.alone is beside["c0", "all"]
    assert not personal.at_home.any() and personal.elsewhere.any()
    first, second = state_of(personal.model), state_of(personal.alone)
    assert any(not np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("recipe", ["plain", "replay", "prior", "alone"])
def test_each_recipe_makes_a_model_of_the_start_and_prior_trains_nothing(clients, recipe):
    drawn = clients(config.load())
    initial = shared_models.trained(drawn, "random")
    for labels, client in (("8", "n0"), ("all", "c0")):
        key = {"client": client, "labels": labels, "start": "pooled", "recipe": recipe}
        records = personalisation.labelled(drawn, client, labels)
        personal = personalisation.tuned(drawn, initial, key, records, drawn.pool, {})
        weights = state_of(personal.model)
        unchanged = all(np.array_equal(array, initial[name]) for name, array in weights.items())
        assert unchanged == (recipe == "prior")
        in_the_loss = recipe in ("replay", "prior")
        assert personal.at_home.any() == in_the_loss
        assert personal.elsewhere.any() != in_the_loss


@pytest.mark.parametrize("half", [False, True])
def test_products_take_the_weights_of_each_step(half):
    """torch's own context would keep the factors of the first pass through a whole training."""
    layer = torch.nn.Linear(3, 2)
    inputs = torch.ones(1, 3)
    with personalisation.bfloat16_products("cpu", half):
        before = layer(inputs)
        with torch.no_grad():
            layer.weight.add_(1.0)
        after = layer(inputs)
    assert before.dtype == (torch.bfloat16 if half else torch.float32)
    assert torch.allclose(after - before, torch.full_like(after, 3.0), atol=0.1)
