"""Tests what index.html shows, with every number of the run known."""

import re
import shutil

from report_page import Page, outside_folds

from pipelines import paths
from pipelines.files import write_json
from pipelines.reporting import answers, comparisons, new_clients, page, views
from stages import report


def test_it_stands_alone(run):
    text = run.source()
    page = Page(text)
    assert "http" not in text
    assert not re.search(r"@import|url\(|fetch|XMLHttp|import\(", text)
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "object")]
    assert [attributes for tag, attributes in page.tags if tag == "script"] == [{}]
    images = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    assert len(images) == 2 * 2
    assert all(image.startswith("data:image/png;base64,") for image in images)


def test_the_first_screen_answers_the_four_questions_and_shows_no_noise(run):
    first = Page(outside_folds(run.source())).text
    for answer in run.view()["answers"]:
        assert f"{answer.question} {answer.headline} {' '.join(answer.sentences)}" in first
    assert "What each client hands out by dp_moments" in first
    assert "datalens" not in first  # its plan says that it is noise
    assert "Samples by datalens NOISE : all 2 clients" in Page(run.source()).text


def test_a_released_classifier_stands_beside_the_score_of_its_set(run):
    assert "released classifier, own" not in run.source()
    quality = paths.quality("digits", "b", "dp_moments") / "quality.json"
    run.edit(quality, lambda content: content.update(released_accuracy=0.754))
    assert Page(run.source()).text.count("released classifier, own: 0.754") == 1


def test_several_data_sets_begin_with_a_line_for_each_that_leads_to_it(run):
    view = run.view()
    other = {**view, "summary": {**view["summary"], "dataset": "lungs", "choice": None}}
    other["answers"] = answers.of_run(other["summary"], [], seeded=False)
    text = page.render(run.params, [view, other])
    navigation = text.partition("<nav")[2].partition("</nav>")[0]
    lines = Page(f"<nav{navigation}").text
    assert lines.startswith(
        f"digits : {view['answers'][0].headline} by {view['answers'][1].headline}"
    )
    assert lines.endswith("lungs : This run cannot say")
    for name in ("digits", "lungs"):
        assert f'href="#{name}"' in navigation and text.count(f'id="{name}"') == 1
    # one data set needs no such list
    assert "<nav" not in run.source()


def test_what_there_is_of_each_of_many_clients_is_folded(run, monkeypatch):
    few = outside_folds(run.source())
    assert few.count("<figure><img") == len(run.params.clients)
    assert few.count('<th scope="row"><a href="digits/clients/') == len(run.params.clients)
    monkeypatch.setattr(views, "MANY", 1)
    monkeypatch.setattr(views, "MOST_GRIDS", 1)
    many = outside_folds(run.source())
    assert many.count("<figure><img") == 1
    assert '<th scope="row"><a href="digits/clients/' not in many
    whole = Page(run.source()).text
    assert "No difference shown at home: 2 of 2 clients" in whole
    assert "Samples by dp_moments: all 2 clients" in whole
    assert run.source().count('<article class="client') == len(run.params.clients)


def test_each_term_is_explained_once_and_not_after_its_use(run):
    text = run.source()
    page = Page(text)
    terms = re.findall("<dfn>(.*?)</dfn>", text)
    assert len(terms) == len(set(terms))
    assert {"TSTR", "FID", "μ", "BMTA", "BCa", "Macro-F1", "Renyi filter"} <= set(terms)
    for term in ("BMTA", "BCa", "TSTR", "FID", "Renyi filter"):
        before, _, _ = text.partition(f"<dfn>{term}</dfn>")
        assert not re.search(rf"\b{term}\b", Page(before).text), term
    assert page.text.count("smaller is more private") >= 1


def test_every_column_has_a_scope_and_every_picture_a_text(run):
    page = Page(run.source())
    heads = [attributes for tag, attributes in page.tags if tag == "th"]
    assert heads and all(head.get("scope") in ("row", "col") for head in heads)
    assert all(attributes["alt"] for tag, attributes in page.tags if tag == "img")
    pictures = [
        attributes for tag, attributes in page.tags if tag == "svg" and "role" in attributes
    ]
    assert pictures and all(attributes["aria-label"] for attributes in pictures)


def test_without_baselines_noisy_methods_and_generators_there_is_a_page(run):
    update = {
        "baselines": run.params.baselines.model_copy(update={"algorithms": []}),
        "dp_baselines": run.params.dp_baselines.model_copy(update={"algorithms": []}),
    }
    whole = run.params
    run.params = whole.model_copy(update=update)
    text = Page(run.source()).text
    assert "This run cannot say" in text  # nobody trained alone
    synthesis = whole.synthesis.model_copy(update={"generators": []})
    run.params = whole.model_copy(update={"synthesis": synthesis})
    text = Page(run.source()).text
    assert "Which road? dpsgd" in text
    assert "Accuracy per round" in text and "New clients" not in text
    assert "What each client hands out" not in text


def test_a_warning_of_many_names_the_first_and_folds_all(run, monkeypatch):
    monkeypatch.setattr(views, "MANY", 5)
    warnings = {"Quality": {"Too low.": [f"c{number}/g" for number in range(9)]}}
    monkeypatch.setattr(views.findings, "warnings", lambda _: warnings)
    text = Page(run.source()).text
    assert "c0/g, c1/g, c2/g, c3/g, c4/g and 4 others: Too low. all 9 c0/g" in text
    assert "c8/g" in text


def test_the_classes_are_named_where_the_cards_name_them(run):
    report.run(run.params)
    without = Page((paths.REPORTS / "index.html").read_text())
    assert "Classes" not in without.text
    card = paths.synthetic("digits", "b", "dp_moments") / "card.json"
    names = ["normal", "<b>bad</b>"]
    run.edit(card, lambda content: content.update(datasheet={"class_names": names}))
    report.run(run.params)
    shown = Page((paths.REPORTS / "index.html").read_text())
    assert "Classes 0 normal, 1 <b>bad</b>" in shown.text
    # what a card says is text, and no mark-up of the page
    assert shown.tags.count(("b", {})) == without.tags.count(("b", {}))


def test_a_partition_by_owner_says_who_holds_which_site(run):
    sites = {"a": ["north", "west"], "b": ["south"]}
    partition = {**run.params.partition.model_dump(), "scheme": "natural", "sites": sites}
    content = {**run.params.model_dump(), "partition": partition}
    run.params = type(run.params).model_validate(content)
    assert "natural, by owner; a holds north and west; b holds south" in Page(run.source()).text


def test_it_says_who_gains(run):
    text = Page(run.source()).text
    assert text.count("Who gains by PPPFL?") == 1
    assert "With pppfl/dp_moments, each client gains on its own images (+0.010 in the mean" in text


def test_every_method_and_client_is_shown_with_its_figures(run):
    text = Page(run.source()).text
    for name, entry in run.summary()["methods"].items():
        assert name in text
        assert f"{entry['mean_accuracy']:.3f}" in text
        if entry["over_local"] is not None:
            assert (
                f"{entry['over_local']:+.3f} {entry['over_local_low']:+.3f} to {entry['over_local_high']:+.3f}"
                in text
            )
        assert f"{entry['mean_accuracy_low']:.3f} to {entry['mean_accuracy_high']:.3f}" in text
    assert "selected on test data, for comparison with the paper only" in text
    assert "BMTA: test-selected" in text
    assert "floor 0.5" in text
    assert "40 training records" in text


def test_the_costs_stand_beside_epsilon_and_a_dash_where_one_is_not_known(run):
    text = Page(run.source()).text
    assert "local nothing 0 nothing leaves a client 0 B 0 B 0 12.5 3.5" in text
    assert (
        "dpsgd a model, every round 10 δ 1e-05 2 MB 4 MB 4 12.5 – 0.660 round 3, of 2 candidates 0.990"
        in text
    )


def test_where_nothing_could_be_selected_nothing_is_called_selected(run):
    assert "nothing leaves a client 0 B 0 B 0 12.5 3.5 – one candidate – one candidate" in (
        Page(run.source()).text
    )


def test_the_page_says_whether_pppfl_beats_its_rivals(run):
    text = Page(run.source()).text
    summary = run.summary()
    first, second = comparisons.sentences(summary["comparisons"], summary["methods"])
    assert second in text
    assert first not in text  # of noise


def test_a_collapsed_model_is_marked_folded_and_its_figures_are_struck_out(run):
    run.collapse("pppfl/dp_moments")
    markup = run.source()
    text = Page(markup).text
    assert text.count("pppfl/dp_moments COLLAPSED") == 2  # methods, costs
    assert "Collapsed pppfl/dp_moments: It is dead." in text
    assert markup.count('<tr class="collapsed">') == 2
    assert (
        markup.count("<small>collapsed</small>") == 2 * 2
    )  # of each client's release, before and after
    first = Page(outside_folds(markup)).text
    assert "pppfl/dp_moments" not in first
    assert "Collapsed , Weak plan: see all warnings" in first


def test_images_whose_plan_said_that_they_are_noise_are_marked_and_folded(run):
    markup = run.source()
    text = Page(markup).text
    assert text.count("pppfl/datalens NOISE") == text.count("fedavg/datalens NOISE") == 2
    # methods, costs, a release of each client, and what its epsilons bought
    assert markup.count('<tr class="weak">') == 2 + 2 + 2 + 2
    methods = text[text.index("Over local, paired") :]
    assert methods.index("dpsgd") < methods.index("more that cannot be compared")
    assert methods.index("more that cannot be compared") < methods.index("pppfl/datalens NOISE")


def test_a_method_that_was_left_out_is_named_with_the_reason_and_is_in_no_table(run):
    place = paths.dp_baseline("digits", "dpsgd") / "dpsgd"
    shutil.rmtree(place)
    place.mkdir()
    write_json(
        place / "results.json", {"method": "dpsgd", "left_out": "dpsgd is left out: no images."}
    )
    text = Page(run.source()).text
    assert "Left out: dpsgd is left out: no images." in text
    assert "dpsgd" not in run.summary()["methods"]
    assert run.summary()["clients"]["a"]["dp_baselines"] == {}


def test_text_from_artifacts_is_escaped(run):
    path = paths.quality("digits", "a", "datalens") / "quality.json"
    run.edit(path, lambda scores: scores.update(warnings=["<script>alert(1)</script>"]))
    text = run.source()
    assert text.count("<script>") == 1  # the page's own
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_new_clients_have_their_figures_their_differences_and_the_sentence(run):
    text = Page(run.source()).text
    assert "Each of a and b in its turn was left out of the shared training" in text
    assert "pppfl/dp_moments 0.200" in text  # without labels: 0.1 and 0.3
    assert "pppfl over random_init paired, cell by cell – +0.300" in text
    assert "pppfl over fedavg/datalens paired, cell by cell – +0.100" in text
    assert "b has 40 training records and is not among those with 64 labels." in text
    for sentence in new_clients.sentences(run.summary()["new_clients"]):
        assert sentence in text


def test_where_nobody_was_held_out_there_is_no_section_of_new_clients(run):
    empty = {"held_out": [], "cells": [], "skipped": [], "privacy": {}}
    for generator in run.params.synthesis.generators:
        run.edit(
            paths.new_clients("digits", generator) / "results.json",
            lambda content: content.update(empty),
        )
    text = Page(run.source()).text
    assert "left out of the shared training" not in text
    assert run.summary()["new_clients"] == {}


def test_a_method_that_trains_another_network_than_local_is_named(run):
    sentence = "dpsgd trains another network than local does"
    assert sentence not in run.source() + run.client_source("a")
    noisy = run.params.dp_baselines
    dpsgd = noisy.dpsgd.model_copy(update={"network": "cnn"})
    noisy = noisy.model_copy(update={"dpsgd": dpsgd})
    run.params = run.params.model_copy(update={"dp_baselines": noisy})
    assert sentence in run.source() and sentence in run.client_source("a")
