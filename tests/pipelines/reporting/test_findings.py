from pipelines.reporting import findings


def test_warnings_are_told_once_with_all_their_places(run):
    found = findings.warnings(run.summary())
    assert found == {"Weak plan": {"only noise": ["a/datalens", "b/datalens"]}}


def test_a_client_that_a_run_went_on_without_is_a_warning(run):
    summary = run.summary()
    summary["methods"]["pppfl/datalens"]["lost"] = {"b": "round 3: it does not answer"}
    (told,) = findings.warnings(summary)["Lost on the way"].items()
    assert told == (
        "The run went on without b, from round 3: it does not answer.",
        ["pppfl/datalens"],
    )


def test_the_facts_name_the_best_methods_and_the_smallest_client(run):
    found = list(findings.facts(run.summary()))
    assert ("Best mean at home", "0.700", "pppfl/datalens: mean 0.700, worst 0.500 (b)") in found
    # one card per generator whose plan does not say that it is noise
    smallest = [(figure, about) for label, figure, about in found if label == "Smallest client, b"]
    assert smallest == [("0.490", "pppfl/dp_moments, 40 records; random_init 0.470")]


def test_a_collapsed_model_is_never_the_best_nor_in_a_card_and_is_a_warning(run):
    for name in ("pppfl/datalens", "pppfl/dp_moments"):  # the best two
        run.collapse(name)
    summary = run.summary()
    assert findings.best(summary, "mean_accuracy") == "local"
    assert not any("pppfl" in about for _, _, about in findings.facts(summary))
    assert findings.marked("it", summary["methods"]["pppfl/datalens"]) == "it (COLLAPSED)"
    assert findings.warnings(summary)["Collapsed"] == {
        "It is dead.": ["pppfl/datalens", "pppfl/dp_moments"]
    }
    for entry in summary["methods"].values():
        entry["collapsed"] = "It is dead."
    assert findings.facts(summary) == []


def test_noise_and_the_collapsed_stand_last(run):
    run.collapse("pppfl/dp_moments")
    order = [name for name, _ in findings.apart_last(run.summary()["methods"])]
    assert order[-1] == "pppfl/dp_moments"
    assert order[-3:-1] == ["pppfl/datalens", "fedavg/datalens"]


def test_an_upper_bound_is_marked_and_never_the_best(run):
    run.bound("pppfl/datalens")  # the best of all
    summary = run.summary()
    assert findings.best(summary, "mean_accuracy") == "pppfl/dp_moments"
    assert findings.not_private(summary["methods"]["pppfl/datalens"])
    assert findings.not_private({"epsilon_max": 0.0, "guarantee": "none", "upper_bound": True})
    assert (
        findings.marked("it", summary["methods"]["pppfl/datalens"])
        == "it (upper bound, not private)"
    )
    assert findings.marked("local", summary["methods"]["local"]) == "local"


def test_the_first_facts_mark_what_has_no_guarantee(run):
    summary = run.summary()
    summary["methods"]["pppfl/datalens"].update(guarantee="none", epsilon_max=float("inf"))
    told = {
        label: about for label, _, about in findings.facts(summary) if "pppfl/datalens" in about
    }
    assert "Best mean at home" in told
    assert all("pppfl/datalens (NOT PRIVATE)" in about for about in told.values())


def test_a_client_whose_budget_buys_no_step_is_a_warning(run):
    summary = run.summary()
    summary["clients"]["b"]["dp_baselines"]["dpsgd"]["epsilon"] = 0.0
    (found,) = findings.warnings(summary)["Took no part"].values()
    assert found == ["b/dpsgd"]


def test_only_what_leaves_without_a_guarantee_is_not_private():
    assert findings.not_private({"epsilon": 10.0, "guarantee": "none"})
    assert not findings.not_private({"epsilon": 10.0, "guarantee": "formal"})
    assert not findings.not_private({"epsilon_max": 0.0, "guarantee": "nothing leaves a client"})


def test_roads_stand_in_order_with_what_a_client_hands_out(run):
    summary = run.summary()
    found = findings.roads(summary, ["datalens", "dp_moments"], ["dpsgd", "nbafl"])
    assert [(row["method"], row["hands_out"]) for row in found] == [
        ("pppfl/datalens", findings.IMAGES),
        ("pppfl/dp_moments", findings.IMAGES),
        ("dpsgd", findings.MODEL),
        ("local", findings.NOTHING),
    ], "pooled and nbafl did not run"
    assert all(row["entry"] is summary["methods"][row["method"]] for row in found)
