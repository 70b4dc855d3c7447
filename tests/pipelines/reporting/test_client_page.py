"""Tests that a client's page holds its own figures and nothing of any other client."""

import numpy as np
import pytest

from pipelines import paths
from pipelines.files import read_arrays, write_arrays
from pipelines.reporting import client_page, collect

# No other figure of the run looks like these.
COUNT = 73913
SCORE = 0.31415


def change_everything_of(run, client):
    """Gives a client other scores, counts, images and warnings, in every file that the report reads."""
    for folder in collect.method_folders(run.params, "digits").values():

        def rescore(content):
            scored = content["clients"][client]
            scored["before"]["accuracy"] = scored["after"]["accuracy"] = SCORE
            scored["global_before"] = scored["global_after"] = SCORE
            if "statements" in content:
                content["statements"][client]["epsilon"] = SCORE

        run.edit(folder / "results.json", rescore)
        correct = {name: np.arange(100) < 50 for name in run.params.clients}
        correct |= {"a": read_arrays(folder / paths.CORRECT)["a"]}
        write_arrays(folder / paths.CORRECT, correct)
    scores = {"records": COUNT, "tstr_accuracy": SCORE, "warnings": [f"{COUNT} are few"]}
    for generator in run.params.synthesis.generators:
        quality = paths.quality("digits", client, generator) / "quality.json"
        run.edit(quality, lambda content: content.update(scores))
        card = paths.synthetic("digits", client, generator) / "card.json"
        run.edit(card, lambda content: content["privacy"].update(epsilon=SCORE))
        (card.parent / "grid.png").write_bytes(b"another picture")


def test_nothing_of_another_client_reaches_the_page(run):
    before = {client: run.client_source(client) for client in "ab"}
    whole = run.source()
    change_everything_of(run, "b")
    assert run.client_source("a") == before["a"]
    # the same canaries are seen where they may be
    own = run.client_source("b")
    assert own != before["b"]
    for text in (own, run.source()):
        assert str(COUNT) in text and f"{SCORE:.3f}" in text
    assert str(COUNT) not in whole


def test_no_figure_over_clients_is_on_it(run):
    content = client_page.facts("a", run.summary(), run.read())
    for method in content["methods"]:
        assert not {key for key in method if key.startswith(("mean", "worst", "spread", "over"))}
    assert set(content["entry"]) == set(client_page.OWN_FIELDS)
    text = run.client_source("a")
    assert "0.880" in text  # local at home, its own
    assert "0.680" not in text  # local in the mean over clients
    assert "recommend" not in text


def test_an_upper_bound_and_what_has_no_guarantee_are_left_out(run):
    assert "fedavg/dp_moments" in run.client_source("a")
    run.bound("fedavg/dp_moments")
    run.void("b", "datalens")
    methods = paths.personal("digits", "datalens") / "pppfl-datalens" / "results.json"
    run.edit(methods, lambda results: results.update(epsilon_max="inf", guarantee="none"))
    content = client_page.facts("a", run.summary(), run.read())
    names = {method["name"] for method in content["methods"]}
    assert not names & {"fedavg/dp_moments", "pppfl/datalens"}
    assert content["entry"]["generators"]["datalens"]["accuracy_after"] is None
    assert content["entry"]["generators"]["dp_moments"]["accuracy_after"] == pytest.approx(0.89)


def test_the_headline_counts_what_is_shown():
    shown = {"gain": {"value": 0.2, "low": 0.1, "high": 0.3, "differing": 9}}
    level = {"gain": {"value": 0.2, "low": -0.1, "high": 0.3, "differing": 9}}
    assert "shown by 1 of 2 methods, a loss by 0" in client_page.headline([shown, level])
    assert "no difference" in client_page.headline([level])
    assert "cannot say" in client_page.headline([])
