import json

import pytest

from pipelines import paths
from pipelines.files import write_json

METHOD_KEYS = {"mean_accuracy", "worst_accuracy", "mean_macro_f1", "bmta", "bmt_f1", "epsilon_max"}
CLIENT_KEYS = {"epsilon", "delta", "records", "generators"}
GENERATOR_KEYS = {"tstr_accuracy", "fid", "accuracy_before", "accuracy_after"}


def test_the_schema_of_the_issue(run):
    summary = run.summary()
    assert {"dataset", "seed", "methods", "clients"} <= set(summary)
    assert {
        "pppfl/datalens",
        "pppfl/dp_moments",
        "fedavg/dp_moments",
        "local",
        "random_init",
        "dpsgd",
    } <= set(summary["methods"])
    assert all(set(entry) >= METHOD_KEYS for entry in summary["methods"].values())
    assert all(set(entry) >= CLIENT_KEYS for entry in summary["clients"].values())
    for entry in summary["clients"].values():
        assert set(entry["generators"]) == {"datalens", "dp_moments"}
        assert all(set(release) >= GENERATOR_KEYS for release in entry["generators"].values())


def test_a_method_is_scored_after_fine_tuning_and_not_at_its_best_round(run):
    entry = run.summary()["methods"]["pppfl/dp_moments"]  # the second method: 0.89 and 0.49 at home
    expected = {
        "mean_accuracy": 0.69,
        "worst_accuracy": 0.49,
        "spread_accuracy": 0.2,
        "mean_macro_f1": 0.345,
        "mean_accuracy_before": 0.3,
        "mean_global_before": 0.075,
        "mean_global_after": 0.1725,
        "selected_round": 3,
        "selected_accuracy": 0.66,
        "selected_worst": 0.44,
        "candidates": 2,
        "rounds": 4,
        "bytes_up": 2_000_000,
        "bytes_down": 4_000_000,
        "seconds": 12.5,
        "seconds_at_home": 3.5,
        "bmta": 0.99,
        "bmt_f1": 0.98,
        "epsilon_max": 10.0,
    }
    assert {key: entry[key] for key in expected} == pytest.approx(expected)
    assert entry["worst_client"] == "b"
    assert run.summary()["methods"]["dpsgd"]["seconds_at_home"] is None  # not every stage knows it


def test_the_largest_epsilon_stands_with_its_own_delta_and_accountant(run):
    path = paths.synthetic("digits", "b", "dp_moments") / "card.json"
    run.edit(
        path, lambda card: card["privacy"].update(epsilon=20.0, delta=1e-7, accountant="another")
    )
    entry = run.summary()["methods"]["pppfl/dp_moments"]
    shown = (entry["epsilon_max_client"], entry["delta"], entry["accountant"])
    assert shown == ("b", 1e-7, "another")
    assert run.summary()["methods"]["dpsgd"]["accountant"] == "RDP"
    assert "delta" not in run.summary()["methods"]["local"]


def test_a_client_gets_its_own_budget_records_and_pppfl_accuracy(run):
    client = run.summary()["clients"]["b"]
    assert (client["epsilon"], client["delta"], client["records"]) == (3.0, 1e-5, 40)
    release = client["generators"]["dp_moments"]
    assert (release["accuracy_before"], release["tstr_accuracy"], release["fid"]) == (0.4, 0.6, 4.0)
    assert release["accuracy_after"] == pytest.approx(0.49)
    assert client["dp_baselines"]["dpsgd"]["accuracy_after"] == pytest.approx(0.44)


def test_the_score_of_a_released_classifier_is_there_where_one_was_released(run):
    quality = paths.quality("digits", "b", "dp_moments") / "quality.json"
    run.edit(quality, lambda content: content.update(released_accuracy=0.75))
    generators = run.summary()["clients"]["b"]["generators"]
    assert generators["dp_moments"]["released_accuracy"] == 0.75
    assert "released_accuracy" not in generators["datalens"]


def test_infinite_and_missing_numbers_become_standard_json(run, tmp_path):
    run.void("a", "datalens")
    quality = paths.quality("digits", "a", "datalens") / "quality.json"
    run.edit(quality, lambda content: content.update(fid=float("nan")))
    write_json(tmp_path / "summary.json", run.summary())

    def refuse(constant):
        raise AssertionError(constant)

    content = json.loads((tmp_path / "summary.json").read_text(), parse_constant=refuse)
    release = content["clients"]["a"]["generators"]["datalens"]
    assert (release["epsilon"], release["mu"], release["fid"]) == ("inf", "inf", None)
    assert content["clients"]["a"]["total"]["epsilon"] == "inf"
    assert content["clients"]["a"]["total"]["guarantee"] == "none"
