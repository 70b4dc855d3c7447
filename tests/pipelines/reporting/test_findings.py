from pipelines.reporting import findings


def test_warnings_are_told_once_with_all_their_places(run):
    found = findings.warnings(run.summary())
    assert found == {"Weak plan": {"only noise": ["a/datalens", "b/datalens"]}}


def test_a_client_that_a_run_went_on_without_is_a_warning(run):
    summary = run.summary()
    summary["methods"]["pppfl/datalens"]["lost"] = {"b": "round 3: it does not answer"}
    (told,) = findings.warnings(summary)["Lost on the way"].items()
    assert told == ("The run went on without b, from round 3: it does not answer.", ["pppfl/datalens"])


def test_the_facts_name_the_best_methods_and_the_smallest_client(run):
    found = list(findings.facts(run.summary()))
    assert ("Best mean at home", "0.700", "pppfl/datalens: mean 0.700, worst 0.500 (b)") in found
    # one card per generator, whichever did better there
    smallest = {(figure, about) for label, figure, about in found if label == "Smallest client, b"}
    assert ("0.500", "pppfl/datalens, 40 records; random_init 0.470") in smallest
    assert len(smallest) == 2


def test_an_upper_bound_is_marked_and_never_the_best(run):
    run.bound("pppfl/datalens")  # the best of all
    summary = run.summary()
    assert findings.best(summary, "mean_accuracy") == "pppfl/dp_moments"
    assert findings.not_private(summary["methods"]["pppfl/datalens"])
    assert findings.not_private({"epsilon_max": 0.0, "guarantee": "none", "upper_bound": True})
    assert findings.marked("it", summary["methods"]["pppfl/datalens"]) == "it (upper bound, not private)"
    assert findings.marked("local", summary["methods"]["local"]) == "local"


def test_the_first_facts_mark_what_has_no_guarantee(run):
    summary = run.summary()
    summary["methods"]["pppfl/datalens"].update(guarantee="none", epsilon_max=float("inf"))
    told = {label: about for label, _, about in findings.facts(summary) if "pppfl/datalens" in about}
    assert {"Best mean at home", "Smallest client, b"} <= set(told)
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
