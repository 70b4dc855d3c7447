import json

import numpy as np
import torch
from torch import nn

from pipelines import paths
from pipelines.federation.home import results
from pipelines.federation.home.personal import balanced
from pipelines.files import read_arrays

MODELS = [
    {"w": np.full((3, 4), number, np.float32), "b": np.zeros(4, np.float32)} for number in range(6)
]
CORRECT = {"a": np.array([True, False, True]), "correct": np.array([False])}


def save(folder, seconds: float) -> dict[str, bytes]:
    folder.mkdir()
    torch.manual_seed(0)
    personal = dict.fromkeys(CORRECT, balanced(nn.Linear(2, 3), np.zeros(3, np.float32)))
    cost = {"rounds": 5, "bytes_down": 8, "bytes_up": 8, "seconds": seconds}
    curve = [{"round": 5, "accuracy_after": 0.5}]
    results.save_method(
        folder, "fedavg/x", {"bmta": 0.5}, curve, personal, correct=CORRECT, cost=cost
    )
    return {path.name: path.read_bytes() for path in (folder / "fedavg-x").iterdir()}


def test_a_clock_changes_no_byte_but_those_of_the_cost(tmp_path):
    first, second = save(tmp_path / "first", 1.0), save(tmp_path / "second", 2.0)
    assert {name for name in first if first[name] != second[name]} == {"cost.json"}
    assert b"seconds" not in first["results.json"]
    assert json.loads(second["cost.json"])["seconds"] == 2.0


def test_correctness_comes_back_as_it_was_whatever_a_client_is_called(tmp_path):
    files = save(tmp_path / "out", 0.0)
    assert set(files) >= {"a.safetensors", "correct.safetensors", paths.CORRECT}
    found = read_arrays(tmp_path / "out" / "fedavg-x" / paths.CORRECT)
    assert {client: images.tolist() for client, images in found.items()} == {
        "a": [True, False, True],
        "correct": [False],
    }
    assert found["a"].dtype == bool


def test_the_models_of_all_rounds_come_back(tmp_path):
    results.save_models(tmp_path / "rounds.safetensors", MODELS)
    loaded = results.load_models(tmp_path / "rounds.safetensors")
    assert [int(model["w"][0, 0]) for model in loaded] == list(range(6))
