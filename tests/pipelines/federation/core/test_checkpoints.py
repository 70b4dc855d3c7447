"""Tests a run that was killed between two rounds and continues.

It has the same bytes as one that was not.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from blocks import DPSGD, NBAFL
from torch import nn

from models import classifiers
from pipelines import methods
from pipelines.config import load
from pipelines.config.dp import Dpsgd, DpsgdHead, Nbafl
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.federation import noisy_training
from pipelines.federation.algorithms import dpsgd, dpsgd_head, nbafl
from pipelines.federation.core import checkpoints
from pipelines.federation.core.task import Task
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.dp.public import Public
from pipelines.federation.home import results
from pipelines.federation.inprocess import InProcess, federate
from pipelines.files import read_csv, read_json
from pipelines.privacy.noise import SeededForTests
from pipelines.training import linear_head
from pipelines.training.tensors import state_of

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


class Killed(BaseException):
    """Stands for SIGKILL: no code of the product catches it."""


@pytest.fixture
def at_every_round(monkeypatch):
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)


@pytest.fixture
def rounds_until(monkeypatch):
    """Lets so many rounds begin, and tells which did."""
    call = InProcess.call

    def until(last: int) -> list[int]:
        begun = []

        def watched(self, payload):
            if payload.scalars["round"] > last:
                raise Killed
            begun.append(payload.scalars["round"])
            return call(self, payload)

        monkeypatch.setattr(InProcess, "call", watched)
        return begun

    return until


def made(count, seed, side=6):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (count, side, side, 1)).astype(np.uint8)
    return Images(pixels, np.arange(count) % 3, np.arange(count))


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 3))


def task(**changes):
    data = {name: made(20, ord(name)) for name in "abc"}
    return replace(
        Task(data, network, None, {name: 1.0 + ord(name) % 5 for name in data}, 0), **changes
    )


def settings_of(name, **changes):
    block = getattr(load().baselines, name)
    return block.model_copy(update={"rounds": 5, "batch": 8, **changes})


def trained(name, unfinished=None, given=None, **changes):
    return federate(methods.module(name), given or task(), settings_of(name, **changes), unfinished)


def bytes_of(models):
    return [{name: array.tobytes() for name, array in model.items()} for model in models]


def untimed(cost):
    return {name: value for name, value in cost.items() if name != "seconds"}


@pytest.mark.parametrize("name", FEDERATED)
def test_a_killed_run_ends_in_the_same_bytes(at_every_round, rounds_until, tmp_path, name):
    whole = trained(name)
    begun = rounds_until(3)
    with pytest.raises(Killed):
        trained(name, tmp_path)
    assert begun == [1, 2, 3]
    begun = rounds_until(9)
    resumed = trained(name, tmp_path)
    assert begun == [4, 5]
    assert bytes_of(resumed.models) == bytes_of(whole.models)
    assert resumed.curves == whole.curves and untimed(resumed.cost) == untimed(whole.cost)


def test_what_clients_remember_is_part_of_it(at_every_round, rounds_until, tmp_path, monkeypatch):
    """This is a negative control. SCAFFOLD whose clients forgot their variates ends elsewhere."""
    whole = trained("scaffold")
    rounds_until(3)
    with pytest.raises(Killed):
        trained("scaffold", tmp_path)
    rounds_until(9)
    monkeypatch.setattr(InProcess, "memories", property(lambda self: {}, lambda self, kept: None))
    assert bytes_of(trained("scaffold", tmp_path).models) != bytes_of(whole.models)


@pytest.mark.parametrize(
    "other",
    [
        {"learning_rate": 0.02},
        {"given": task(seed=1)},
        {"given": task(data={name: made(20, ord(name) + 1) for name in "abc"})},
        {"given": task(epsilons={"a": 1.0, "b": 2.0, "c": 9.0})},
    ],
)
def test_another_run_begins_anew(at_every_round, rounds_until, tmp_path, other):
    rounds_until(3)
    with pytest.raises(Killed):
        trained("fedavg", tmp_path)
    begun = rounds_until(9)
    trained("fedavg", tmp_path, **other)
    assert begun == [1, 2, 3, 4, 5]


def test_other_code_begins_anew(at_every_round, rounds_until, tmp_path, monkeypatch):
    rounds_until(3)
    with pytest.raises(Killed):
        trained("fedavg", tmp_path)
    monkeypatch.setattr(checkpoints, "SOURCES", ("models",))
    begun = rounds_until(9)
    trained("fedavg", tmp_path)
    assert begun == [1, 2, 3, 4, 5]


def test_a_run_of_seconds_writes_nothing(tmp_path):
    trained("fedavg", tmp_path / "unfinished")
    assert not (tmp_path / "unfinished").exists()


@pytest.mark.parametrize(
    "damage", [b"", b"no checkpoint", None], ids=["empty", "foreign", "cut off"]
)
def test_a_damaged_checkpoint_is_told_in_a_sentence(at_every_round, rounds_until, tmp_path, damage):
    rounds_until(3)
    with pytest.raises(Killed):
        trained("fedavg", tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-200] if damage is None else damage)
    with pytest.raises(UserError, match=r"checkpoint .* cannot be read .* begins anew"):
        trained("fedavg", tmp_path)


def test_a_disk_that_is_full_leaves_the_checkpoint_before(
    at_every_round, rounds_until, tmp_path, monkeypatch
):
    rounds_until(3)
    with pytest.raises(Killed):
        trained("fedavg", tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def full(content, path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    rounds_until(9)
    with (
        monkeypatch.context() as patched,
        pytest.raises(UserError, match="The one before it is whole"),
    ):
        patched.setattr(checkpoints.torch, "save", full)
        trained("fedavg", tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


BUILD = partial(classifiers.build, "mlp", shape=(4, 4, 1), classes=3, seed=0)
BUILD_HEAD = partial(classifiers.build, "scatter", shape=(8, 8, 1), classes=3, seed=0)
HEAD = {
    "count_share": 0.05,
    "clipping_norm": 0.5,
    "momentum": 0.5,
    "averaging": 0.5,
    "schedules": [{"from_signal": 0.0, "steps": 5, "learning_rate": 2.0}],
}
# {settings: (their algorithm, its network, pixels on a side)}
ALGORITHMS = {
    Dpsgd: (dpsgd, BUILD, 4),
    Nbafl: (nbafl, BUILD, 4),
    DpsgdHead: (dpsgd_head, BUILD_HEAD, 8),
}
NOISY = {
    "momentum": (Dpsgd, {**DPSGD, "momentum": 0.5, "averaging": 0.9}),
    "adam, quantile": (Dpsgd, {**DPSGD, "optimiser": "adam", "clipping": "quantile"}),
    "adam corrected": (Dpsgd, {**DPSGD, "optimiser": "adam_corrected"}),
    "control variates": (Dpsgd, {**DPSGD, "control_variates": True}),
    "falling noise": (Dpsgd, {**DPSGD, "noise_control": "falling_loss", "noise_decay": 0.9}),
    "a rule for local steps": (Dpsgd, {**DPSGD, "local_steps_rule": "local_sgd"}),
    "nbafl": (Nbafl, NBAFL),
    "head": (DpsgdHead, HEAD),
}


@pytest.fixture
def cheap_at_the_end(monkeypatch):
    """Seconds a client; what is spent by RDP and, round by round, by PLD is in the log."""
    monkeypatch.setattr(Account, "_by_pld", lambda *_: 0.0)


def noisy(folder, unfinished, kind, block, first=None):
    folder.mkdir()
    settings = kind(**{**block, "rounds": 6})
    own = {"a": 8.0, "b": 3.0}
    algorithm, build, side = ALGORITHMS[kind]
    first = first or (lambda: (state_of(build()), 7))
    accounts = {
        client: algorithm.new_account(epsilon, 1e-5, settings) for client, epsilon in own.items()
    }
    data = {client: made(60, seed, side) for seed, client in enumerate(own)}
    sources = {client: SeededForTests(seed) for seed, client in enumerate(own)}
    public = Public(build(), made(20, 9, side))
    given = NoisyTask(build, data, accounts, sources, public)
    noisy_training.train(algorithm, given, settings, first, folder, unfinished)
    cost, spent = read_json(folder / noisy_training.COST), read_json(folder / noisy_training.SPENT)
    models = results.load_models(folder / "rounds.safetensors")
    return bytes_of(models), read_csv(folder / noisy_training.LOG), untimed(cost), spent


@pytest.mark.parametrize("case", NOISY)
def test_a_killed_noisy_run_ends_in_the_same_bytes_and_has_spent_the_same(
    at_every_round, cheap_at_the_end, rounds_until, tmp_path, monkeypatch, case
):
    monkeypatch.setattr(linear_head, "FEATURES", tmp_path / "features")
    whole = noisy(tmp_path / "whole", None, *NOISY[case])
    begun = rounds_until(3)
    with pytest.raises(Killed):
        noisy(tmp_path / "killed", tmp_path / "unfinished", *NOISY[case])
    assert begun == [1, 2, 3]
    begun = rounds_until(9)
    assert noisy(tmp_path / "resumed", tmp_path / "unfinished", *NOISY[case]) == whole
    assert begun[0] == 4


def test_what_a_noisy_run_starts_from_is_drawn_once(
    at_every_round, cheap_at_the_end, rounds_until, tmp_path
):
    """The run is killed in its first round, before any checkpoint.

    A release that it starts from must not be drawn again.
    """
    drawn = []

    def first():
        drawn.append(1)
        return state_of(BUILD()), 7

    rounds_until(0)
    with pytest.raises(Killed):
        noisy(tmp_path / "killed", tmp_path / "unfinished", *NOISY["momentum"], first)
    (tmp_path / "unfinished/run.rounds.partial").touch()
    rounds_until(9)
    *_, cost, _ = noisy(tmp_path / "resumed", tmp_path / "unfinished", *NOISY["momentum"], first)
    assert drawn == [1] and not (tmp_path / "unfinished/run.rounds.partial").exists()
    assert cost == noisy(tmp_path / "whole", None, *NOISY["momentum"], first)[2]


@pytest.mark.parametrize("case", ["momentum", "nbafl"])
@pytest.mark.parametrize("last", [0, 3])
def test_streams_of_test_noise_go_on_behind_what_the_start_drew(
    at_every_round, cheap_at_the_end, rounds_until, tmp_path, monkeypatch, case, last
):
    """The start draws from the clients' own sources, as a start from images does."""
    made_sources = []
    kind = SeededForTests
    monkeypatch.setitem(
        globals(),
        "SeededForTests",
        lambda seed: made_sources.append(kind(seed)) or made_sources[-1],
    )

    def first():
        return {
            name: array + made_sources[-1].uniform(1).item()
            for name, array in state_of(BUILD()).items()
        }, 7

    whole = noisy(tmp_path / "whole", None, *NOISY[case], first)
    rounds_until(last)
    with pytest.raises(Killed):
        noisy(tmp_path / "killed", tmp_path / "unfinished", *NOISY[case], first)
    rounds_until(9)
    assert noisy(tmp_path / "resumed", tmp_path / "unfinished", *NOISY[case], first) == whole


def test_noisy_rounds_of_other_code_are_gone_before_they_are_drawn_again(
    at_every_round, cheap_at_the_end, rounds_until, tmp_path, monkeypatch
):
    rounds_until(3)
    with pytest.raises(Killed):
        noisy(tmp_path / "killed", tmp_path / "unfinished", *NOISY["momentum"])
    monkeypatch.setattr(checkpoints, "SOURCES", ("models",))
    begun = rounds_until(0)
    with pytest.raises(Killed):
        noisy(tmp_path / "again", tmp_path / "unfinished", *NOISY["momentum"])
    assert begun == [] and [path.name for path in (tmp_path / "unfinished").iterdir()] == [
        "run.first"
    ]
