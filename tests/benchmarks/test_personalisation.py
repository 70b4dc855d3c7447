"""The table of personalisation: paired differences by hand, and no test image in development."""

import numpy as np
import pytest

from benchmarks import personalisation
from pipelines import config
from pipelines.datasets.labelled_images import Images


def cell(start: str, client: str, own: float, everywhere: float, seed: int = 0) -> dict:
    key = {"dataset": "digits", "seed": seed, "labels": "8", "client": client}
    recipe = "plain" if start == "random" else "replay"
    return {**key, "start": start, "recipe": recipe, "own": own, "global": everywhere}


def test_differences_to_training_alone_are_paired_by_client_and_seed():
    cells = [
        cell("random", "n0", 0.5, 0.2),
        cell("random", "n1", 0.9, 0.3),
        cell("random", "n0", 0.6, 0.2, seed=1),
        cell("pooled", "n0", 0.8, 0.7),
        cell("pooled", "n1", 0.85, 0.8),
        cell("pooled", "n0", 0.9, 0.9, seed=1),
    ]
    alone, pooled = personalisation.summary(cells)
    assert alone["own_less_local"] == alone["worst_own_less_local"] == 0.0
    assert pooled["own_less_local"] == pytest.approx((0.3 - 0.05 + 0.3) / 3)
    assert pooled["worst_own_less_local"] == pytest.approx(-0.05)
    assert pooled["global_less_local_prior_off"] == pytest.approx((0.5 + 0.5 + 0.7) / 3)
    assert (pooled["seeds"], pooled["cells"]) == (2, 3)


def test_a_client_whose_training_alone_is_not_measured_is_in_no_row():
    assert personalisation.summary([cell("pooled", "n0", 0.8, 0.7)]) == []


def test_newcomers_have_few_labels_and_federated_clients_all():
    keys = personalisation.wanted(
        "digits", 0, ["random", "pooled"], ["plain", "replay"], ["8", "all"]
    )
    clients = {
        label: {key["client"] for key in keys if key["labels"] == label} for label in ("8", "all")
    }
    assert clients == {"8": set(personalisation.NEWCOMERS), "all": set(personalisation.FEDERATED)}
    alone = [key for key in keys if key["start"] == "random"]
    assert {key["recipe"] for key in alone} == {"plain"}
    assert len(keys) == 3 * (3 + 5)


def test_in_development_the_global_images_come_from_the_training_images(tmp_path, monkeypatch):
    monkeypatch.setattr(personalisation, "SCRATCH", tmp_path)
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (1400, 8, 8, 1)).astype(np.uint8)
    train = Images(pixels, np.arange(1400) % 10, np.arange(1400))
    here = personalisation.world(config.load(), "digits", 100, train, None)
    everyone = set(here.everyone.ids.tolist())
    assert len(everyone) == personalisation.HELD_OUT["digits"]
    for shard in here.shards.values():
        for part in (shard.train, shard.validation, shard.test):
            assert not everyone & set(part.ids.tolist())
    again = personalisation.world(config.load(), "digits", 100, train, None)
    for client, released in here.sets.items():
        assert np.array_equal(released.images, again.sets[client].images)
