"""Tests CIFAR-10's profile from end to end on a few made-up images of its shape: colour, ResNet,
its own settings.
"""

import csv
import json

import numpy as np
import pytest

from pipelines.federation import health

pytestmark = [pytest.mark.pipeline, pytest.mark.slow]
TARGETS = ("fine_tune@own-dp_moments", "train_baseline@own-fedavg")


def colour(params: dict) -> None:
    """Gives the own data set everything of cifar10 except its archive, its size and its teachers."""
    cifar = json.loads(json.dumps(params["profiles"]["cifar10"]))  # a copy without aliases
    params["profiles"]["own"] = {**cifar, "source": "npz", "classes": 3, "images": 20}
    params["profiles"]["own"]["training"] = {}
    params["profiles"]["own"]["synthesis"]["datalens"].update(
        teachers=4, steps=1, batch=2, top_k=20, latent=4
    )
    params["meta"].update(rounds=1, inner_steps=1, batch=8, few_labels=None)
    params["meta"]["warm_start"].update(steps=1, batch=8)
    step = {"from_labels": 0, "steps": 1, "learning_rate": 1e-3, "synthetic_batch": 8}
    replay = {"batch": 8, "schedules": [{**step, "synthetic_share": 0.5}]}
    params["fine_tune"].update(epochs=1, every=None, replay=replay)
    params["baselines"]["fedavg"]["rounds"] = 1


def test_cifar_shaped_images_go_all_the_way(within, monkeypatch):
    # a hundred steps of ResNet-18 for each model would take minutes, and say nothing of colour
    monkeypatch.setattr(health, "STEPS", 1)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (90, 32, 32, 3)).astype(np.uint8)
    np.savez(within.path / "raw" / "own.npz", images=images, labels=np.arange(90) % 3)
    within.edit(colour)
    within.repro(*TARGETS)
    for generator in ("datalens", "dp_moments"):
        made = np.load(within.path / "data/synthetic/own/c0" / generator / "images.npz")
        assert made["images"].shape == (20, 32, 32, 3)
        assert made["images"].std(axis=3).mean() > 1  # not grey
    rounds = within.path / "models/private/baselines/own/fedavg/fedavg-dp_moments/rounds.csv"
    assert [row["round"] for row in csv.DictReader(rounds.open())] == ["0", "1"]
    cost = json.loads((rounds.parent / "cost.json").read_text())
    assert cost["bytes_up"] == 2 * 4 * 11_170_371  # two clients' ResNet-18 with three outputs
