"""Tests overrides, their text, and which parameters make a stored run another one."""

import subprocess
import sys

import pytest
from project import ENV, ROOT

from experiments import parameters
from experiments.plans import STORES
from pipelines.errors import UserError


def test_a_key_that_is_not_there_is_named(params):
    with pytest.raises(UserError, match=r"'meta\.emma' of an experiment is not there"):
        parameters.resolved(params, {"meta.emma": True})
    with pytest.raises(UserError, match="not there"):
        parameters.resolved(params, {"seed.deeper": 1})


def test_a_value_that_may_not_be_is_a_sentence(params):
    with pytest.raises(
        UserError,
        match=r"'epsilon' parameter of clients\.c0 must be a float in \(0, inf\]\. Got -1\.0",
    ):
        parameters.resolved(params, {"clients.c0.epsilon": -1.0})


def test_an_override_changes_that_key_alone(params):
    found = parameters.resolved(params, {"meta.ema": True, "partition.small": None})
    assert (
        found.meta.ema is True
        and params.meta.ema is False
        and found.baselines.pppfl_real.ema is False
    )
    assert found.model_copy(update={"meta": params.meta, "partition": params.partition}) == params


def test_values_in_hydras_grammar():
    overrides = {
        "a": True,
        "b": None,
        "c": 0.5,
        "d": ["x", "y"],
        "e": "../shared",
        "f": float("inf"),
        "g": 3,
    }
    found = parameters.arguments(overrides)[1::2]
    assert found == ["a=true", "b=null", "c=0.5", "d=['x','y']", "e='../shared'", "f=inf", "g=3"]


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"meta.rounds": 31}, False),
        ({"baselines.scaffold.local_epochs": 3}, True),
        ({"baselines.fedavg.local_epochs": 3}, False),
        ({"baselines.local.epochs": 3}, True),  # MNIST's profile has its own
        ({"profiles.mnist.training.local.epochs": 3}, False),  # clients take the mean with it
        ({"synthesis.dp_moments.clip": 5.0}, True),  # MNIST's profile has its own
        ({"synthesis.datalens.teachers": 5}, False),
        ({"profiles.mnist.images": 5}, False),
        ({"profiles.digits.images": 5}, True),
        ({"privacy.delta": 1e-6}, False),
        ({"quality.repeats": 9}, True),  # nothing in Table II is scored by it
        ({"synthesis.gan.steps": 5}, True),
        ({"dp_baselines.dpsgd.rounds": 5}, True),
        ({"device": "cpu"}, True),
        ({"fine_tune.shared_every": None}, True),
        ({"prepare.root": "../elsewhere"}, True),
        ({"seed": 8}, True),  # a run has its own
    ],
)
def test_settings_hold_what_a_figure_depends_on(params, asked, changed, same):
    run = next(
        run
        for run in STORES["table2"](asked)
        if (run.dataset, run.variant) == ("mnist", "fedavg, datalens")
    )
    other = parameters.resolved(params, changed)
    assert (parameters.settings(params, run) == parameters.settings(other, run)) == same


def test_settings_hold_the_generators_version(params, asked, monkeypatch):
    from pipelines.synthesis import dp_moments

    run = next(iter(STORES["table2"](asked)))
    before = parameters.settings(params, run)
    monkeypatch.setattr(dp_moments, "VERSION", dp_moments.VERSION + 1)
    assert parameters.settings(params, run) != before


def test_settings_of_noisy_training_hold_its_mechanisms_version(params, asked, monkeypatch):
    from pipelines.federation.algorithms import dpsgd

    noisy = next(run for run in STORES["roads"](asked) if run.variant == "dpsgd")
    plain = next(iter(STORES["table2"](asked)))
    before = [parameters.settings(params, run) for run in (noisy, plain)]
    monkeypatch.setattr(dpsgd, "VERSION", dpsgd.VERSION + 1)
    after = [parameters.settings(params, run) for run in (noisy, plain)]
    assert after[0] != before[0] and after[1] == before[1]


def test_a_refusal_needs_no_torch():
    code = "import sys, experiments.__main__; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=ENV).returncode == 0
