"""Tests what index.html and clients' pages say of privacy: each epsilon, and what has no guarantee."""

import re

from report_page import Page

from pipelines import paths
from pipelines.reporting.formatting import bound


def test_it_says_that_it_must_not_leave(run):
    assert "must not leave (push: false)" in Page(run.source()).text


def test_each_epsilon_has_delta_unit_relation_and_accountant(run):
    text = Page(run.source()).text
    assert "exact Gaussian DP; unit: record; add or remove one record; sampling: none" in text
    assert "RDP; unit: record; add or remove one record" in text
    shown = re.findall(r"ε (?:at most )?(\S+)", text)
    followed = re.findall(r"ε (?:at most )?(\S+?),? (?:at )?δ", text)
    numbers = [figure for figure in shown if figure[0].isdigit()]
    assert numbers
    assert len(numbers) == len([figure for figure in followed if figure[0].isdigit()])


def test_whom_a_release_trusts_stands_beside_its_accountant(run):
    sentence = "This bound holds while at most 1 of the 2 clients put what they know together."
    shared = "noise shared: whom it trusts stands under Privacy details"
    assert sentence not in run.source() + run.client_source("a")
    assert shared not in run.source()
    card = paths.synthetic("digits", "a", "dp_moments") / "card.json"
    run.edit(card, lambda content: content["privacy"].update(trust=sentence))
    results = paths.personal("digits", "dp_moments") / "pppfl-dp_moments/results.json"
    run.edit(results, lambda content: content.update(trust=[sentence]))
    # beside the method, at the release, and beside what all releases of the client cost together
    details = run.source().partition("Privacy details")[2]
    assert details.count(sentence) == 3
    assert run.client_source("a").count(sentence) == 2
    assert sentence not in run.client_source("b")
    # each epsilon elsewhere says where it stands: of client, method and picture, and what it bought
    assert Page(run.source()).text.count(shared) == 4


def test_what_a_release_does_not_cover_is_on_both_pages(run):
    assert run.source().count("timing; a person whose records lie at several clients") == 1
    card = paths.synthetic("digits", "a", "dp_moments") / "card.json"
    without = "what more than 2 of the 5 clients know together"
    run.edit(card, lambda content: content["privacy"]["not_covered"].append(without))
    for source in (run.source(), run.client_source("a")):
        assert without in source.partition("Not covered")[2]
    assert without not in run.client_source("b")


def test_the_total_is_on_the_page(run):
    total = run.summary()["clients"]["a"]["total"]
    text = Page(run.source()).text
    figure = f"ε {bound(total['epsilon'])} at δ {bound(total['delta'], 3)}"
    assert f"{figure} for datalens and dp_moments and dpsgd together" in text
    assert "when this page was made: 0 releases ever, ε 0" in text


def test_an_upper_bound_is_marked_in_both_tables_and_explained(run):
    assert "UPPER BOUND" not in Page(run.source()).text
    run.bound("fedavg/datalens")
    text = Page(run.source()).text
    assert text.count("fedavg/datalens UPPER BOUND, NOT PRIVATE") == 2
    assert "An upper bound was trained across clients on their real records without privacy" in text


def test_nothing_is_marked_when_every_guarantee_is_formal(run):
    assert "NOT PRIVATE" not in Page(run.source()).text


def test_a_release_without_a_guarantee_is_marked_wherever_it_counts(run):
    run.void("a", "datalens")
    methods = paths.personal("digits", "datalens") / "pppfl-datalens" / "results.json"
    run.edit(methods, lambda results: results.update(epsilon_max="inf", guarantee="none"))
    text = Page(run.source()).text
    assert "pppfl/datalens NOT PRIVATE" in text  # the table of methods
    assert "a NOT PRIVATE budget" in text  # the client
    assert "datalens NOT PRIVATE NOISE exact" in text  # its release
    assert "a NOT PRIVATE ε ∞ at" in text  # its sample grid
    assert "NOT PRIVATE a/datalens" in text  # the warnings
    assert "b NOT PRIVATE" not in text
    assert "local NOT PRIVATE" not in text  # nothing leaves a client


def test_new_clients_of_models_without_a_guarantee_are_marked(run):
    assert "NOT PRIVATE" not in Page(run.source()).text
    private = {"epsilon_max": "inf", "guarantee": "none"}
    path = paths.new_clients("digits", "datalens") / "results.json"
    run.edit(path, lambda content: content["privacy"].update(a=private))
    assert (
        "NOT PRIVATE: no guarantee holds for what the models of datalens learnt from."
        in Page(run.source()).text
    )
