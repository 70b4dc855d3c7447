from pipelines.reporting import answers


def of(run, seeded=False):
    return answers.of_run(run.summary(), run.params.dp_baselines.algorithms, seeded)


def test_the_four_questions_are_answered_by_one_road(run):
    federate, road, private, cost = of(run)
    assert federate.headline.endswith("at home no difference is shown")
    assert road.headline == "pppfl/dp_moments"
    assert road.sentences[0] == "A client hands out images, once."
    assert private.headline == "Yes: ε at most 10 at δ 1e-05"
    assert "sampling: none" in private.sentences[0] and "exact Gaussian DP" in private.sentences[0]
    assert cost.headline == "2 MB up, 4 rounds"


def test_seeded_noise_is_not_private(run):
    assert of(run, seeded=True)[2].headline == "No"


def test_whom_the_private_road_trusts_is_told_beside_its_epsilon(run):
    summary = run.summary()
    assert "trust" not in " ".join(answers.private(summary, seeded=False).sentences)
    entry = summary["methods"][summary["choice"]["road"]]
    entry["trust"] = ["This bound holds while nobody talks (a sentence on trust)."]
    assert entry["trust"][0] in answers.private(summary, seeded=False).sentences


def test_what_has_no_guarantee_is_named_beside_the_private_road(run):
    run.void("a", "datalens")
    summary = run.summary()
    summary["methods"]["pppfl/datalens"].update(guarantee="none", epsilon_max=float("inf"))
    told = answers.private(summary, seeded=False).sentences
    assert "No guarantee holds for pppfl/datalens (NOT PRIVATE)." in told


def test_caps_and_totals_beyond_any_claim_are_told():
    def client(epsilon, cap):
        return {"ledger": {"epsilon": epsilon, "delta": 1e-5}, "cap": cap}

    clients = {"a": client(3.0, None), "b": client(12.0, 20.0), "c": client(float("inf"), None)}
    told = answers.spent(clients)
    assert told[0].endswith("together: ε 3 (a) to 12 (b) at δ 1e-05.")
    assert told[1] == "Of all releases of c together nothing is claimed."
    assert told[2] == "A lifetime cap is set for b."
