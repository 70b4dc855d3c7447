"""Tests what the command refuses, and one real `dvc exp run` at tiny size."""

import json
import sys
from dataclasses import replace

import pytest
from project import ENV, ROOT

from experiments import __main__ as command
from experiments import collect, runner, store
from experiments.plans import STORES

OWN = ("--datasets", "own", "--seeds", "3", "--publish-private")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--datasets", "mmnist"),
            r"The '--datasets' argument must be of \['breast', .*'digits', .*\]\. Got 'mmnist' instead\.",
        ),
        (("--seeds", "-1"), r"The '--seeds' argument must be ints from 0\. Got \[-1\] instead\."),
        (
            ("--datasets", "my_npz"),
            r"my_npz is no public benchmark: .*--publish-private says that this is meant\.",
        ),
        (
            ("--methods", "dpsgd", "fedavg"),
            r"The '--methods' argument must name methods of figure2\. Got dpsgd, fedavg instead\.",
        ),
    ],
)
def test_what_is_refused_is_a_sentence(monkeypatch, arguments, sentence):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(runner, "reproduce", lambda *_: pytest.fail("begun"))
    monkeypatch.setattr(sys, "argv", ["experiments", "figure2", *arguments])
    with pytest.raises(SystemExit, match=f"^Error: {sentence}$"):
        command.main()


@pytest.fixture
def short(checkout, monkeypatch):
    """Prepares Table V with one run and its rounds, in this process.

    The data set is the tiny project's own.
    """
    plan = STORES["table5"]

    def first(asked):
        yield replace(next(iter(plan(asked))), rounds=True)

    monkeypatch.setitem(STORES, "table5", first)
    (checkout.path / "experiments/results/table5.json").unlink(
        missing_ok=True
    )  # the project's own runs
    monkeypatch.chdir(checkout.path)
    monkeypatch.setenv("PATH", ENV["PATH"])
    return checkout


@pytest.mark.slow
@pytest.mark.pipeline
def test_a_table_is_made_kept_and_not_measured_again(short, monkeypatch, capsys):
    parameters = (short.path / "params.yaml").read_bytes()
    monkeypatch.setattr(sys, "argv", ["experiments", "table5", *OWN])
    command.main()
    assert (short.path / "params.yaml").read_bytes() == parameters
    (row,) = store.kept("table5")
    assert (row["dataset"], row["seed"], row["variant"]) == ("own", 3, "1-5, dp_moments")
    found = short.path / "models/private/personal/own/dp_moments/pppfl-dp_moments/results.json"
    after = {
        client: entry["after"] for client, entry in json.loads(found.read_text())["clients"].items()
    }
    entry = row["methods"]["pppfl/dp_moments"]
    assert {client: own["accuracy"] for client, own in entry["clients"].items()} == {
        client: scores["accuracy"] for client, scores in after.items()
    }
    assert (
        set(after) == {"c0", "c1"}
        and entry["rounds"] == 2
        and entry["bytes_up"] > 0
        and entry["candidates"] == 1
    )
    shared = row["shared_per_round"]["dp_moments"]
    assert len(shared) == 3 and all(
        own["global_before"] == shared[-1] for own in entry["clients"].values()
    )
    assert len(row["query_per_round"]["dp_moments"]) == 2
    quality = row["fidelity"]["clients"]["dp_moments"]
    found = [(scores["inception_score"], scores["fid"]) for scores in quality.values()]
    assert all(1 - 1e-6 <= inception <= 3 + 1e-6 and fid > 0 for inception, fid in found), found
    for kind in ("csv", "md", "png"):
        assert (short.path / f"experiments/results/table5.{kind}").stat().st_size > 100
    assert "table5-own-1-5-dp_moments-seed3" in short.dvc("exp", "list", "--name-only").stdout
    tracked = short.git("status", "--porcelain").splitlines()
    assert all("experiments/results/" in line or line.endswith("dvc.lock") for line in tracked), (
        tracked
    )

    monkeypatch.setattr(runner, "reproduce", lambda *_: pytest.fail("measured twice"))
    monkeypatch.setattr(collect, "figures", lambda *_: pytest.fail("read twice"))
    command.main()
    assert "table5.md, .csv and .png: 1 runs" in capsys.readouterr().out

    short.edit(lambda params: params["meta"].update(rounds=3))
    with pytest.raises(SystemExit, match="not committed"):
        command.main()
    short.git("commit", "-qam", "other rounds")
    with pytest.raises(pytest.fail.Exception, match="measured twice"):
        command.main()
