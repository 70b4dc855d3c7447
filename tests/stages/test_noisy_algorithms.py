"""Tests every noisy algorithm as a stage: what it leaves, within which budget, and what its ledgers
say.
"""

import json

import pytest
from project import names_in

from pipelines.config.dp import DP_BASELINES
from pipelines.errors import UserError

pytestmark = pytest.mark.pipeline


def rounds_logged(folder) -> list[str]:
    """Returns the lines of the log, one per round."""
    return (folder / "log.csv").read_text().splitlines()[1:]


def test_every_algorithm_runs_within_its_budgets_and_enters_its_ledgers(within):
    within.edit(lambda params: params["dp_baselines"].update(algorithms=list(DP_BASELINES)))
    for stage in ("prepare", "partition", "train_alone"):
        within.stage(stage, "--dataset", "own")
    for name in DP_BASELINES:
        within.stage("train_dp_baseline", "--dataset", "own", "--algorithm", name)
        folder = within.path / "models/private/dp_baselines/own" / name / name
        results = json.loads((folder / "results.json").read_text())
        assert results["guarantee"] == "formal" and results["candidates"] == 1
        tested = (folder / "rounds.csv").read_text().splitlines()[1:]
        assert [line.partition(",")[0] for line in tested] == [str(len(rounds_logged(folder)))], (
            name
        )
        for client, epsilon in {"c0": 10.0, "c1": 3.0}.items():
            claimed = float(results["statements"][client]["epsilon"])
            assert 0.8 * epsilon < claimed <= epsilon + 1e-9, name
            spent = json.loads((folder / "spent.json").read_text())[client]
            assert 0 < spent["epsilon_by_pld"] <= spent["epsilon_spent"] * 1.01 <= 1.01 * epsilon, (
                name
            )
    entered = [
        json.loads(line) for line in (within.path / "ledgers/own/c0.jsonl").read_text().splitlines()
    ]
    assert {entry["mechanism"] for entry in entered if "mechanism" in entry} == set(DP_BASELINES)


def test_what_looks_at_public_images_is_left_out_where_own_images_declare_none(within, capsys):
    within.edit(lambda params: params["profiles"]["own"].update(public_fraction=None))
    within.edit(lambda params: params["dp_baselines"].update(algorithms=["dpsgd", "adap"]))
    for stage in ("prepare", "partition", "train_alone"):
        within.stage(stage, "--dataset", "own")
    capsys.readouterr()
    within.stage("train_dp_baseline", "--dataset", "own", "--algorithm", "adap")
    said = capsys.readouterr().out
    why = "adap is left out: its noise_control 'falling_loss' looks at images that are declared public"
    assert (
        said.startswith(why)
        and "profiles.own.public_fraction declares none" in said
        and len(said.splitlines()) == 1
    )
    folder = within.path / "models/private/dp_baselines/own/adap"
    assert json.loads((folder / "adap/results.json").read_text()) == {
        "method": "adap",
        "left_out": said.strip(),
    }
    assert not list((within.path / "ledgers").rglob("*.jsonl"))
    dpsgd = ("--dataset", "own", "--algorithm", "dpsgd")
    within.stage("train_dp_baseline", *dpsgd)
    assert "after fine-tuning" in capsys.readouterr().out
    results = json.loads((folder.parent / "dpsgd/dpsgd/results.json").read_text())
    assert results["health"] == {
        "collapsed": False,
        "why": "",
        **dict.fromkeys(("accuracy", "untrained", "guessing")),
    }


def test_a_start_that_spends_all_and_images_too_few_are_sentences(within):
    for stage in ("prepare", "partition", "train_alone"):
        within.stage(stage, "--dataset", "own")
    cell = ("--dataset", "own", "--algorithm")

    def refused(algorithm: str, **changes) -> str:
        within.edit(lambda params: params["dp_baselines"].update(algorithms=[algorithm]))
        within.edit(lambda params: params["dp_baselines"][algorithm].update(changes))
        with pytest.raises(UserError) as error:
            within.stage("train_dp_baseline", *cell, algorithm)
        return str(error.value)

    warm = {"share": 0.999, "images": 20, "epochs": 1, "batch": 20, "learning_rate": 1e-3}
    assert "The 'share' parameter of dp_baselines.dpsgd_warm.warm_start" in refused(
        "dpsgd_warm", warm_start=warm
    )
    said = refused("dpsgd", noise_control="scheduled", noise_decay=0.01)
    assert "The 'noise_decay' parameter" in said and "thousandth" in said
    said = refused("agn", noise_decay=0.001)
    assert (
        "The 'noise_decay' parameter of dp_baselines.agn" in said and "at least 0.9 where" in said
    )
    said = refused("dpsgd", noise_control="const", noise_decay=0.999, clipping="nonprivate_oracle")
    assert "allow_nonprivate" in said
    within.edit(lambda params: params["profiles"]["own"].update(public_fraction=1e-3))
    within.edit(lambda params: params["dp_baselines"]["dpsgd"].update(clipping="const"))
    within.stage("prepare", "--dataset", "own")
    assert "profiles.own.public_fraction larger" in refused("dpsgd", clipping="proxy")
    assert names_in(within.path / "models/private/dp_baselines/own") == {"about"}
