"""Tests the benchmark of noisy training. params.yaml's blocks allow every case, records are dealt
as a case says, and a small run reads where it should.
"""

from dataclasses import replace

import numpy as np
import pytest
from project import ROOT

from benchmarks import dp_federation
from benchmarks.dp_cases import CASES
from pipelines import config
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import dpsgd
from pipelines.synthesis import dp_moments

TEN_TIMES = "agn, ten times the rate"


@pytest.fixture(scope="module")
def params() -> config.Params:
    return config.load(ROOT / "params.yaml")


def images(count: int, seed: int) -> Images:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 10
    pixels = rng.integers(0, 30, (count, 28, 28, 1)) + 20 * labels[:, None, None, None]
    return Images(pixels.astype(np.uint8), labels, np.arange(count))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dataset", ["mnist", "fashion_mnist"])
def test_every_case_has_settings(params, dataset, name):
    settings = dp_federation.settings_of(params, dataset, CASES[name])
    assert settings.network == ("fedavg_cnn" if "its network" in name else "papernot")


def test_control_variates_are_measured_where_they_do_not_cancel(params):
    """With one linear step per round and all clients, the mean is the same without them."""
    every = [
        dp_federation.settings_of(params, "mnist", case)
        for case in CASES.values()
        if case.algorithm != "nbafl"
    ]
    assert {settings.local_steps > 1 for settings in every if settings.control_variates} == {True}


def test_ten_times_the_rate_is_ten_times_the_rate(params):
    """This holds on every data set, because DPFL-AGN prints one rate."""
    for dataset in ("mnist", "fashion_mnist"):
        once, ten = (
            dp_federation.settings_of(params, dataset, CASES[name]) for name in ("agn", TEN_TIMES)
        )
        assert once.learning_rate == 1e-3 and ten == once.model_copy(update={"learning_rate": 1e-2})


def test_adap_dp_fl_has_its_own_noise_on_each_data_set(params):
    """The paper prints 6 with decay 0.9999 on MNIST, and 4 with decay 0.9998 on Fashion-MNIST."""
    case = CASES["adap, falling noise"]
    found = [
        dp_federation.settings_of(params, dataset, case) for dataset in ("mnist", "fashion_mnist")
    ]
    assert [(own.noise_multiplier, own.noise_decay) for own in found] == [
        (6.0, 0.9999),
        (4.0, 0.9998),
    ]
    assert [own.learning_rate for own in found] == [2e-3, 1e-3]
    assert {(own.noise_control, own.clipping, own.clipping_norm) for own in found} == {
        ("falling_loss", "const", 1.0)
    }


def test_what_is_kept_is_of_todays_conditions_or_measured_again(params, monkeypatch, tmp_path):
    monkeypatch.setattr("benchmarks.common.RESULTS", tmp_path)
    given = params, "mnist", "dpsgd, warm start", 0, None, None
    run = {"seed": 0, "read_at": 2.0, "accuracy": 0.5, "steps": 1, "cpu_seconds": 1.0}
    monkeypatch.setattr(dp_federation, "measure", lambda *asked: [dict(run)])
    dp_federation._add(*given)
    monkeypatch.setattr(dp_federation, "measure", lambda *asked: pytest.fail("it is kept"))
    dp_federation._add(*given)
    moments = params.synthesis.dp_moments.model_copy(update={"count_weight": 0.123})
    other = params.model_copy(
        update={"synthesis": params.synthesis.model_copy(update={"dp_moments": moments})}
    )
    dirichlet = replace(CASES[given[2]], partition=CASES["fedfdp"].partition)
    richer = replace(CASES[given[2]], epsilon=3.0)
    changes = [
        *((dp_federation, "CASES", {**CASES, given[2]: case}) for case in (dirichlet, richer)),
        *(
            (dp_federation, name, value)
            for name, value in (("PUBLIC", 0.5), ("DELTA", 1e-6), ("CLIENTS", ["k0"]))
        ),
        *((mechanism, "VERSION", 99) for mechanism in (dpsgd, dp_moments)),
    ]
    for where, name, value in changes:
        with monkeypatch.context() as own, pytest.raises(pytest.fail.Exception):
            own.setattr(where, name, value)
            dp_federation._add(*given)
    rougher = params.model_copy(
        update={"partition": params.partition.model_copy(update={"min_records": 99})}
    )
    for instead in (other, rougher):
        with pytest.raises(pytest.fail.Exception):
            dp_federation._add(instead, *given[1:])


def test_a_round_that_nobody_answers_is_not_counted(params):
    case = replace(CASES["fedfdp"], epsilon=0.6, published={})
    (run,) = dp_federation.measure(params, "mnist", case, 0, images(120, 0), images(50, 1))
    assert 0 < run["rounds"] == run["steps"] < 60


def test_public_images_are_nobodys(params):
    public, data = dp_federation.dealt(params, CASES["dpsgd"], 0, images(600, 0))
    ids = [set(part.ids.tolist()) for part in (public, *data.values())]
    assert len(public) == 20 and sum(map(len, ids)) == len(set.union(*ids)) == 600


@pytest.mark.parametrize("name", ["fedfdp", "nbafl", "dpsgd, warm start"])
def test_a_run_is_read_where_the_published_table_is(params, name, monkeypatch):
    case = CASES[name]
    monkeypatch.setattr(dp_federation, "CLIENTS", ["k0", "k1"])
    few = {**case.settings, "rounds": 67 if name == "fedfdp" else 2}
    if few["warm_start"]:
        few["warm_start"] = {**few["warm_start"], "images": 20, "epochs": 1}
    case = dp_federation.Case(case.algorithm, case.partition, case.epsilon, few, case.published)
    runs = dp_federation.measure(params, "fashion_mnist", case, 0, images(120, 0), images(50, 1))
    assert [run["read_at"] for run in runs] == ([1.0, 4.0] if name == "fedfdp" else [2.0])
    assert all(0 <= run["accuracy"] <= 1 and run["epsilon_spent"] <= run["read_at"] for run in runs)
    if name == "fedfdp":  # dpfl.md 4.1: 65 steps at epsilon 1
        assert [run["steps"] for run in runs] == [65, 67]
    row = dp_federation.row("fashion_mnist", name, runs[0]["read_at"], {}, runs[:1])
    assert row["published"] == (0.617 if name == "fedfdp" else None)
