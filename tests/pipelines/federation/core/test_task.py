"""Tests all algorithms through the same interface: the same bytes again, in any order of clients."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from project import ROOT
from torch import nn

from pipelines import methods
from pipelines.config import load
from pipelines.config.data import Augmentation
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import scaffold
from pipelines.federation.core import local_sgd
from pipelines.federation.core.control_variates import CONTROL
from pipelines.federation.core.messages import Payload
from pipelines.federation.core.task import Task, of_clients
from pipelines.federation.inprocess import federate
from pipelines.training.tensors import THREADS

FEDERATED = (
    "fedavg",
    "fedprox",
    "fednova",
    "scaffold",
    "reptile",
    "sda_fl",
    "fedmeta",
    "pppfl_paper",
)


def made(count, seed):
    rng = np.random.default_rng(seed)
    return Images(
        rng.integers(0, 256, (count, 6, 6, 1)).astype(np.uint8),
        np.arange(count) % 3,
        np.arange(count),
    )


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 3))


WARPS = Augmentation(rotation=0.1, scale=0.1, shear=0.1, shift=0.5, elastic=0.0, noise=0.1)


def task(names="abc", seed=0):
    data = {name: made(20 + 3 * ord(name) % 7, ord(name)) for name in names}
    return Task(data, network, WARPS, {name: 1.0 + ord(name) % 5 for name in names}, seed)


def test_what_knows_no_noise_has_no_finite_epsilon():
    """PPPFL weighs a client by what its set was made with, not by its configured budget."""
    params = load()
    held = {client: range(3) for client in params.clients}
    for generator in ("gan", None):
        assert set(of_clients(params, "digits", held, "any", generator).epsilons.values()) == {
            math.inf
        }
    asked = {client: params.clients[client].epsilon for client in held}
    assert of_clients(params, "digits", held, "any", "dp_moments").epsilons == asked


def weights(name, given):
    settings = getattr(load().baselines, name).model_copy(update={"rounds": 3, "batch": 8})
    return federate(methods.module(name), given, settings).models


@pytest.mark.parametrize("name", FEDERATED)
def test_the_same_seed_gives_the_same_bytes_and_the_order_of_clients_none(name):
    one, again, other = weights(name, task()), weights(name, task()), weights(name, task("cab"))
    for first, second, third in zip(one, again, other, strict=True):
        for key in first:
            assert first[key].tobytes() == second[key].tobytes() == third[key].tobytes()


@pytest.mark.parametrize("name", FEDERATED)
def test_another_seed_gives_other_batches_and_every_round_moves(name):
    one, other = weights(name, task()), weights(name, task(seed=1))
    assert any(not np.array_equal(one[-1][key], other[-1][key]) for key in one[-1])
    assert len(one) == 4
    assert all(np.isfinite(array).all() for model in one for array in model.values())
    assert not np.array_equal(one[0]["1.weight"], one[1]["1.weight"])


def test_records_become_tensors_once_and_are_warped_anew_in_every_batch(monkeypatch):
    calls = []
    tensors = local_sgd.tensors
    monkeypatch.setattr(local_sgd, "tensors", lambda *a: calls.append(1) or tensors(*a))
    weights("fedavg", task())
    assert len(calls) == 3  # a call per client, whatever the rounds
    held = task().local("a")
    rows, stream = torch.arange(5), held.stream(1)
    first, second = held.batch(rows, stream)[0], held.batch(rows, stream)[0]
    assert not torch.equal(first, second) and not torch.equal(first, held.images[:5])


def test_a_client_s_memory_never_crosses():
    """SCAFFOLD's clients remember a variate; what they send is weights and its change."""
    given = task()
    settings = load().baselines.scaffold.model_copy(update={"batch": 8})
    state = scaffold.client(given, "a", settings)
    sent = scaffold.server(given, settings).broadcast
    for seen in (1, 2, 3):
        before = state.memory
        answer = scaffold.client_update(Payload(sent, {"round": seen}), state, settings)
        assert set(answer.arrays) == set(sent)
        for name, variate in state.memory.items():
            change = answer.arrays[CONTROL + name]
            assert np.array_equal(change, variate - before[name])
            assert seen == 1 or not np.array_equal(change, variate)


CONVOLUTIONS = """
import hashlib, math
import numpy as np
from models import classifiers
from pipelines.config import load
from pipelines.datasets.labelled_images import Images
from pipelines.federation.core.task import Task
from pipelines.federation.inprocess import federate
images = np.random.default_rng(0).integers(0, 256, (300, 28, 28, 1)).astype(np.uint8)
data = {"a": Images(images, np.arange(300) % 10, np.arange(300))}
build = lambda: classifiers.build("cnn", shape=(28, 28, 1), classes=10, seed=0)
settings = load().baselines.fedavg.model_copy(update={"rounds": 1, "local_epochs": 1})
weights = federate("fedavg", Task(data, build, None, {"a": math.inf}, 0), settings).models[-1]
print(hashlib.sha256(b"".join(array.tobytes() for array in weights.values())).hexdigest())
"""


@pytest.mark.slow
def test_the_number_of_cores_decides_no_bit_of_a_network_of_convolutions():
    def digest(**environment):
        mine = {
            name: value
            for name, value in os.environ.items()
            if name not in ("OMP_NUM_THREADS", THREADS)
        }
        command = [sys.executable, "-c", CONVOLUTIONS]
        done = subprocess.run(
            command,
            env={**mine, **environment},
            cwd=ROOT,
            text=True,
            capture_output=True,
            check=True,
        )
        return done.stdout

    one = digest(OMP_NUM_THREADS="1")
    assert digest(OMP_NUM_THREADS="3") == one
    assert digest(FEDLENS_THREADS="3") != one  # negative control: it is the threads that would


def test_a_number_of_threads_that_is_none_is_told_in_a_sentence():
    command = [
        sys.executable,
        "-m",
        "stages.meta_train",
        "--dataset",
        "digits",
        "--generator",
        "gan",
    ]
    told = subprocess.run(
        command, env={**os.environ, THREADS: "all"}, cwd=ROOT, text=True, capture_output=True
    )
    sentence = "The environment variable FEDLENS_THREADS must be a positive int. Got 'all' instead."
    assert (told.returncode, told.stderr) == (1, f"Error: {sentence}\n")
