"""Tests that the server of a run bounds what its clients report."""

import math

import pytest
from project import ROOT

from pipelines import config
from pipelines.federation.engine import server_gathers_sets
from pipelines.federation.network.server import bounds
from pipelines.federation.run_spec import RunSpec


@pytest.fixture(scope="module")
def params() -> config.Params:
    return config.load(ROOT / "params.yaml")


def of(params: config.Params, method: str) -> dict:
    return dict(bounds(params, RunSpec("digits", method, "dp_moments")))


@pytest.mark.parametrize("method", ["fedavg", "fedprox", "fednova", "scaffold", "reptile"])
def test_a_client_counts_what_the_settings_say(params, method):
    run = RunSpec("digits", method, "dp_moments")
    images, settings = params.profiles["digits"].images, run.settings(params)
    steps = settings.local_epochs * math.ceil(images / settings.batch)
    found = of(params, method)
    assert found["images"] == (int, images, images) and found["steps"] == (int, steps, steps)
    assert set(found) == {"images", "steps", "train_loss"}


def test_of_sda_fl_up_to_its_own_set_and_the_whole_pool(params):
    images = params.profiles["digits"].images
    found = of(params, "sda_fl")
    assert found["images"] == (int, images, images * (1 + len(params.clients)))
    assert found["steps"][1] < found["steps"][2] and "pseudo_labelled" in found


def test_of_pppfl_no_number_weighs(params):
    assert set(of(params, "pppfl")) == {"query_loss", "query_accuracy"}


def test_of_noise_no_more_steps_than_are_planned(params):
    settings = RunSpec("digits", "dpsgd").settings(params)
    found = bounds(params, RunSpec("digits", "dpsgd"))
    assert found["steps"][2] == settings.rounds * max(
        settings.local_steps, settings.most_local_steps
    )
    assert "images" not in found and "left" in found
    assert "left" not in bounds(params, RunSpec("digits", "nbafl"))


@pytest.mark.parametrize("gather_sets", [False, True])
def test_a_server_gathers_what_the_algorithm_needs_or_the_settings_ask_for(params, gather_sets):
    federation = params.federation.model_copy(update={"gather_sets": gather_sets})
    changed = params.model_copy(update={"federation": federation})
    for method in ("fedavg", "pppfl_paper"):
        assert server_gathers_sets(changed, RunSpec("digits", method, "dp_moments")) == gather_sets
    for method in ("pppfl", "pooled", "sda_fl"):
        assert server_gathers_sets(changed, RunSpec("digits", method, "dp_moments"))
    assert not server_gathers_sets(changed, RunSpec("digits", "dpsgd"))
