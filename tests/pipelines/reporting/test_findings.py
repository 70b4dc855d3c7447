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


def test_a_collapsed_model_is_never_the_best_and_is_a_warning(run):
    for name in ("pppfl/datalens", "pppfl/dp_moments"):  # the best two
        run.collapse(name)
    summary = run.summary()
    assert findings.best(summary, "mean_accuracy") == "local"
    assert findings.marked("it", summary["methods"]["pppfl/datalens"]) == "it (COLLAPSED)"
    assert findings.warnings(summary)["Collapsed"] == {
        "It is dead.": ["pppfl/datalens", "pppfl/dp_moments"]
    }


def test_noise_and_the_collapsed_stand_apart(run):
    run.collapse("pppfl/dp_moments")
    comparable, others = findings.apart(run.summary()["methods"])
    assert list(others) == ["pppfl/datalens", "pppfl/dp_moments", "fedavg/datalens"]
    assert list(comparable) == ["local", "random_init", "fedavg/dp_moments", "dpsgd"]


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


def test_a_client_whose_budget_buys_no_step_is_a_warning(run):
    summary = run.summary()
    summary["clients"]["b"]["dp_baselines"]["dpsgd"]["epsilon"] = 0.0
    (found,) = findings.warnings(summary)["Took no part"].values()
    assert found == ["b/dpsgd"]


def test_only_what_leaves_without_a_guarantee_is_not_private():
    assert findings.not_private({"epsilon": 10.0, "guarantee": "none"})
    assert not findings.not_private({"epsilon": 10.0, "guarantee": "formal"})
    assert not findings.not_private({"epsilon_max": 0.0, "guarantee": "nothing leaves a client"})


def test_what_a_client_hands_out_depends_on_the_method():
    def handed_out(method):
        return findings.handed_out(method, ["dpsgd", "nbafl"])

    assert handed_out("pppfl/datalens") == handed_out("pooled/datalens") == findings.IMAGES
    assert handed_out("dpsgd") == handed_out("fedavg/datalens") == findings.MODEL
    # it trains on real records, and each round's model tells of them
    assert handed_out("pppfl_real") == handed_out("fedavg_real") == findings.MODEL
    assert handed_out("local") == handed_out("random_init") == findings.NOTHING
