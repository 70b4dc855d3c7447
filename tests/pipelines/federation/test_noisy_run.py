"""Tests a whole run in process: what the store holds, and that public images steer noise and
nothing else.
"""

from functools import partial

import numpy as np
import pytest
from blocks import DPSGD

from models import classifiers
from pipelines.config.dp import Dpsgd
from pipelines.datasets.labelled_images import Images
from pipelines.federation import noisy_training
from pipelines.federation.algorithms import dpsgd
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.dp.public import Public
from pipelines.federation.home import results
from pipelines.files import read_csv, read_json
from pipelines.privacy.noise import SeededForTests
from pipelines.training.tensors import state_of

BUILD = partial(classifiers.build, "mlp", shape=(4, 4, 1), classes=2, seed=0)


def records(count: int, seed: int) -> Images:
    """Returns dark and bright images."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    pixels = rng.integers(0, 60, (count, 4, 4, 1)) + 180 * labels[:, None, None, None]
    return Images(pixels.astype(np.uint8), labels, np.arange(count))


@pytest.fixture
def run(tmp_path):
    def run(name: str, public: int = 0, **changes):
        folder = tmp_path / name
        folder.mkdir()
        settings = Dpsgd(**{**DPSGD, "rounds": 8, "learning_rate": 0.3, **changes})
        accounts = {
            client: dpsgd.new_account(epsilon, 1e-5, settings)
            for client, epsilon in {"a": 8.0, "b": 4.0}.items()
        }
        data = {client: records(60, seed) for seed, client in enumerate(accounts)}
        sources = {client: SeededForTests(seed) for seed, client in enumerate(accounts)}
        images = Public(BUILD(), records(public, 9)) if public else None
        task = NoisyTask(BUILD, data, accounts, sources, images)
        noisy_training.train(dpsgd, task, settings, lambda: (state_of(BUILD()), 0), folder)
        return folder

    return run


def test_the_store_holds_models_cost_log_and_what_was_spent(run):
    folder = run("plain")
    assert (
        len(results.load_models(folder / "rounds.safetensors")) == 1
    )  # the last: runs of thousands of rounds are usual
    weights = 4 * sum(
        array.size for array in results.load_models(folder / "rounds.safetensors")[0].values()
    )
    cost, log, spent = (
        read_json(folder / "cost.json"),
        read_csv(folder / "log.csv"),
        read_json(folder / "spent.json"),
    )
    assert (
        cost["bytes_up"] == 8 * 2 * weights
        and cost["bytes_down"] == 9 * 2 * weights
        and cost["seconds"] > 0
    )
    assert [row["round"] for row in log] == [str(number) for number in range(1, 9)]
    assert {
        "epsilon_spent.a",
        "signal_to_noise",
        "noise_multiplier.b",
        "clipping_norm.b",
        "clients",
    } <= set(log[0])
    assert spent["a"]["steps"] == spent["b"]["steps"] == 16
    assert 7.9 < spent["a"]["epsilon_spent"] <= 8 and 3.9 < spent["b"]["epsilon_spent"] <= 4
    for client in "ab":
        for figure in (
            "epsilon_spent",
            "epsilon_by_pld",
        ):  # after each round; the last is what was spent
            told = [float(row[f"{figure}.{client}"]) for row in log]
            assert told == sorted(told) and told[0] < told[-1]
            assert told[-1] == pytest.approx(spent[client][figure], rel=1e-3)
        assert all(
            0 < float(row[f"epsilon_by_pld.{client}"]) < float(row[f"epsilon_spent.{client}"])
            for row in log
        )


def test_bytes_are_counted_for_who_is_still_there(run):
    folder = run("leaving", noise_multiplier=1.2, sampling_rate=0.3)
    spent, log = read_json(folder / "spent.json"), read_csv(folder / "log.csv")
    assert spent["b"]["steps"] < spent["a"]["steps"] <= 16
    rounds = sum(-(-spent[client]["steps"] // 2) for client in "ab")
    weights = 4 * sum(
        array.size for array in results.load_models(folder / "rounds.safetensors")[0].values()
    )
    assert read_json(folder / "cost.json")["bytes_up"] == rounds * weights
    assert (log[0]["clients"], log[-1]["clients"]) == ("2", "1")


def test_public_images_are_watched_and_change_no_weight_of_a_run_with_constant_noise(run):
    with_images, without = run("with", public=20), run("without")
    one, two = (
        results.load_models(folder / "rounds.safetensors")[-1] for folder in (with_images, without)
    )
    assert all(np.array_equal(one[name], two[name]) for name in one)
    log = read_csv(with_images / "log.csv")
    assert float(log[-1]["public_loss"]) < float(log[0]["public_loss"])
    assert "public_loss" not in read_csv(without / "log.csv")[0]


def test_the_public_loss_lowers_the_noise_of_a_controlled_run_within_its_budget(run):
    asked = {
        "noise_control": "plateau",
        "noise_decay": 0.7,
        "noise_threshold": 10.0,
        "noise_multiplier": 6.0,
    }
    folder = run("controlled", public=20, **asked, rounds=30)
    noises = [float(row["noise_multiplier.a"]) for row in read_csv(folder / "log.csv")]
    assert noises[:4] == pytest.approx([6, 6, 6 * 0.7, 6 * 0.49])
    spent = read_json(folder / "spent.json")
    assert all(
        spent[client]["epsilon_spent"] <= epsilon
        for client, epsilon in {"a": 8.0, "b": 4.0}.items()
    )
    assert spent["b"]["steps"] < 60
    together = [row for row in read_csv(folder / "log.csv") if row["clients"] == "2"]
    assert all(
        0 < float(row["epsilon_by_pld.b"]) < float(row["epsilon_spent.b"]) for row in together
    )
