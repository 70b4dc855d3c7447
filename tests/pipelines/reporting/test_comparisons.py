import numpy as np
import pytest

from pipelines import paths
from pipelines.evaluation import intervals
from pipelines.files import write_arrays
from pipelines.reporting import collect, comparisons


def rewrite(run, method, **correct):
    path = collect.method_folders(run.params, "digits")[method] / paths.CORRECT
    write_arrays(path, correct)


def told(summary) -> list[str]:
    return comparisons.sentences(summary["comparisons"], summary["methods"])


def test_a_verdict_marks_who_has_no_guarantee(run):
    summary = run.summary()
    for name in ("pppfl/datalens", "dpsgd"):
        summary["methods"][name].update(guarantee="none", epsilon_max=float("inf"))
    first, second = told(summary)
    assert first.startswith("pppfl/datalens (NOT PRIVATE) ") and "dpsgd (NOT PRIVATE)" in first
    assert (
        second.startswith("pppfl/dp_moments ")
        and "local (" in second
        and "local (NOT" not in second
    )


def wrong(first: int, count: int = 100) -> np.ndarray:
    return np.arange(count) >= first


def test_every_method_has_an_interval_and_all_but_local_their_difference_to_it(run):
    for name, entry in run.summary()["methods"].items():
        assert entry["mean_accuracy_low"] < entry["mean_accuracy"] < entry["mean_accuracy_high"]
        assert (entry["over_local"] is None) == (name == "local")
    entry = run.summary()["methods"][
        "pppfl/datalens"
    ]  # 0.9 and 0.5, local 0.88 and 0.48, of the same images
    assert entry["over_local"] == pytest.approx(0.02)
    read = run.read()["correct"]
    paired = intervals.of_difference(read["pppfl/datalens"], read["local"], seed=0)
    assert entry["over_local_low"] == pytest.approx(paired.low, abs=0.005)
    assert entry["over_local_high"] - entry["over_local_low"] < 0.05  # unpaired it would be 0.17


def test_images_that_differ_from_local_are_counted(run):
    entries = run.summary()["methods"]
    assert entries["pppfl/datalens"]["over_local_differing"] == 4  # 2 of each client
    assert entries["local"]["over_local_differing"] == 0


def test_without_local_there_is_nothing_to_be_over(run):
    baselines = run.params.baselines.model_copy(update={"algorithms": ["random_init"]})
    run.params = run.params.model_copy(update={"baselines": baselines})
    assert {entry["over_local"] for entry in run.summary()["methods"].values()} == {None}


def test_pppfl_is_held_against_each_rival_on_its_own_generator(run):
    found = [(entry["method"], entry["rival"]) for entry in run.summary()["comparisons"]]
    assert found == [
        (f"pppfl/{generator}", rival)
        for generator in ("datalens", "dp_moments")
        for rival in ("local", "random_init", f"fedavg/{generator}", "dpsgd")
    ]


def test_the_sentence_says_it_either_way(run):
    rewrite(run, "pppfl/datalens", a=wrong(20), b=wrong(20))
    rewrite(run, "local", a=wrong(60), b=wrong(20))
    rewrite(run, "random_init", a=wrong(0), b=wrong(5))
    rewrite(run, "fedavg/datalens", a=wrong(20), b=np.roll(wrong(20), 10))
    rewrite(run, "pppfl/dp_moments", a=wrong(60), b=wrong(20))
    first, second = told(run.summary())
    assert first.startswith("pppfl/datalens is ahead of local (+0.200 [+0.1")
    assert "is behind random_init (-0.175 [-0.2" in first
    assert "shows no difference to fedavg/datalens (+0.000 [-0.0" in first
    assert second.startswith(
        "pppfl/dp_moments shows no difference to local (+0.000 [–, –]; 0 images differ)"
    )


def test_few_images_on_one_side_are_no_victory_whatever_the_interval_says(run):
    rewrite(run, "pppfl/datalens", a=wrong(20), b=wrong(20))
    rewrite(run, "local", a=wrong(23), b=wrong(22))
    rewrite(run, "random_init", a=wrong(23), b=wrong(23))
    local, random_init = run.summary()["comparisons"][:2]
    assert local["low"] > 0 and random_init["low"] > 0
    first = comparisons.sentences([local, random_init], run.summary()["methods"])[0]
    assert "shows no difference to local" in first and "5 images differ" in first
    assert "is ahead of random_init" in first and "6 images differ" in first


def test_intervals_follow_the_seed_alone(run):
    first = run.summary()
    assert run.summary() == first
    run.params = run.params.model_copy(update={"seed": 8})
    assert (
        run.summary()["methods"]["local"]["mean_accuracy_low"]
        != first["methods"]["local"]["mean_accuracy_low"]
    )
