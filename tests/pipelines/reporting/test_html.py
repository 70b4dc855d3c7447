import re
import shutil
from html.parser import HTMLParser

from pipelines import paths
from pipelines.files import write_json
from pipelines.reporting import comparisons, findings, new_clients, page
from pipelines.reporting.formatting import bound
from stages import report


class Page(HTMLParser):
    """Collects every tag with its attributes, and the text a reader sees."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.hidden = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.hidden = tag == "style"

    def handle_endtag(self, tag):
        self.hidden = False

    def handle_data(self, data):
        if not self.hidden:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def source(run):
    read = run.read()
    pictures = dict.fromkeys(("methods", "rounds", "epsilon", "new_clients"), b"png")
    summary = run.summary()
    ways = findings.roads(
        summary, run.params.synthesis.generators, run.params.dp_baselines.algorithms
    )
    report = {"summary": summary, "grids": read["grids"], "pictures": pictures, "roads": ways}
    return page.render(
        run.params, [{**report, "new_clients": page.new_clients_view(read, run.params.seed)}]
    )


def test_it_stands_alone(run):
    text = source(run)
    page = Page(text)
    assert "http" not in text
    assert not re.search(r"@import|url\(", text)
    assert not [tag for tag, _ in page.tags if tag in ("script", "link", "iframe", "object")]
    images = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    assert len(images) == 4 + 2 * 2
    assert all(image.startswith("data:image/png;base64,") for image in images)
    assert all(attributes["href"].startswith("#") for tag, attributes in page.tags if tag == "a")


def test_what_there_is_of_each_of_many_clients_is_folded(run, monkeypatch):
    few = source(run)
    monkeypatch.setattr(page, "MANY", 1)
    many = source(run)
    assert "<details>" not in few
    folded = "".join(re.findall("<details>.*?</details>", many, re.DOTALL))
    clients = len(run.params.clients)
    assert folded.count('<article class="client') == few.count('<article class="client') == clients
    assert folded.count("<figure><img") == clients * len(run.params.synthesis.generators)


def test_a_warning_of_many_names_the_first_and_folds_all(run, monkeypatch):
    monkeypatch.setattr(page, "MANY", 5)
    warnings = {"Quality": {"Too low.": [f"c{number}/g" for number in range(9)]}}
    monkeypatch.setattr(page.findings, "warnings", lambda _: warnings)
    text = Page(source(run)).text
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
    assert "natural, by owner; a holds north and west; b holds south" in Page(source(run)).text


def test_it_says_who_gains(run):
    text = Page(source(run)).text
    assert text.count("Who gains by federating?") == len(run.params.synthesis.generators)
    assert "With pppfl/dp_moments, each client gains on its own images (+0.010 in the mean" in text


def test_it_says_that_it_must_not_leave(run):
    assert "must not leave (push: false)" in Page(source(run)).text


def test_every_method_and_client_is_shown_with_its_figures(run):
    text = Page(source(run)).text
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


def test_each_epsilon_has_delta_unit_relation_and_accountant(run):
    text = Page(source(run)).text
    assert "exact Gaussian DP; unit: record; add or remove one record; sampling: none" in text
    assert "RDP; unit: record; add or remove one record" in text
    shown = re.findall(r"ε (\S+)", text)
    followed = re.findall(r"ε (\S+?),? (?:at )?δ", text)
    numbers = [figure for figure in shown if figure[0].isdigit()]
    assert numbers
    assert len(numbers) == len([figure for figure in followed if figure[0].isdigit()])


def test_the_total_is_on_the_page(run):
    total = run.summary()["clients"]["a"]["total"]
    text = Page(source(run)).text
    figure = f"ε {bound(total['epsilon'])} at δ {bound(total['delta'], 3)}"
    assert f"{figure} for datalens and dp_moments and dpsgd together" in text
    assert "when this page was made: 0 releases ever, ε 0" in text


def test_the_costs_stand_beside_epsilon_and_a_dash_where_one_is_not_known(run):
    text = Page(source(run)).text
    assert "local 0 nothing leaves a client 0 B 0 B 0 12.5 at home 3.5" in text
    assert (
        "dpsgd 10 δ 1e-05 2 MB 4 MB 4 12.5 at home – 0.660 round 3, of 2 candidates 0.990" in text
    )


def test_where_nothing_could_be_selected_nothing_is_called_selected(run):
    assert (
        "local 0 nothing leaves a client 0 B 0 B 0 12.5 at home 3.5 – one candidate – one candidate"
        in (Page(source(run)).text)
    )


def test_the_page_says_whether_pppfl_beats_its_rivals(run):
    text = Page(source(run)).text
    summary = run.summary()
    for sentence in comparisons.sentences(summary["comparisons"], summary["methods"]):
        assert sentence in text


def test_an_upper_bound_is_marked_in_both_tables_and_explained(run):
    assert "UPPER BOUND" not in Page(source(run)).text
    run.bound("fedavg/datalens")
    text = Page(source(run)).text
    assert text.count("fedavg/datalens UPPER BOUND, NOT PRIVATE") == 2
    assert "An upper bound was trained across clients on their real records without privacy" in text


def test_nothing_is_marked_when_every_guarantee_is_formal(run):
    assert "NOT PRIVATE" not in Page(source(run)).text


def test_a_release_without_a_guarantee_is_marked_wherever_it_counts(run):
    run.void("a", "datalens")
    methods = paths.personal("digits", "datalens") / "pppfl-datalens" / "results.json"
    run.edit(methods, lambda results: results.update(epsilon_max="inf", guarantee="none"))
    text = Page(source(run)).text
    assert "pppfl/datalens NOT PRIVATE" in text  # the table of methods
    assert "a NOT PRIVATE budget" in text  # the client
    assert "datalens NOT PRIVATE NOISE exact" in text  # its release
    assert "a NOT PRIVATE ε ∞" in text  # its sample grid
    assert "NOT PRIVATE a/datalens" in text  # the warnings
    assert "b NOT PRIVATE" not in text
    assert "local NOT PRIVATE" not in text  # nothing leaves a client


def test_a_collapsed_model_is_marked_and_its_figures_are_struck_out(run):
    assert "COLLAPSED" not in Page(source(run)).text
    run.collapse("pppfl/dp_moments")
    markup = source(run)
    text = Page(markup).text
    assert text.count("pppfl/dp_moments COLLAPSED") == 3  # roads, methods, costs
    assert "Collapsed pppfl/dp_moments: It is dead." in text
    assert markup.count('<tr class="collapsed">') == 3
    assert (
        markup.count("<small>collapsed</small>") == 2 * 2
    )  # of each client's release, before and after
    assert "pppfl/dp_moments: mean" not in text  # the cards at the top


def test_images_whose_plan_said_that_they_are_noise_are_marked_and_stand_last(run):
    markup = source(run)
    text = Page(markup).text
    assert text.count("pppfl/datalens NOISE") == 3 and text.count("fedavg/datalens NOISE") == 2
    assert markup.count('<tr class="weak">') == 3 + 2 + 2  # and a release of each client
    methods = text[text.index("Over local, paired") :]
    assert methods.index("dpsgd") < methods.index("pppfl/datalens NOISE")


def test_a_method_that_was_left_out_is_named_with_the_reason_and_is_in_no_table(run):
    place = paths.dp_baseline("digits", "dpsgd") / "dpsgd"
    shutil.rmtree(place)
    place.mkdir()
    write_json(
        place / "results.json", {"method": "dpsgd", "left_out": "dpsgd is left out: no images."}
    )
    text = Page(source(run)).text
    assert "Left out: dpsgd is left out: no images." in text
    assert "dpsgd" not in run.summary()["methods"]
    assert run.summary()["clients"]["a"]["dp_baselines"] == {}


def test_text_from_artifacts_is_escaped(run):
    path = paths.quality("digits", "a", "datalens") / "quality.json"
    run.edit(path, lambda scores: scores.update(warnings=["<script>alert(1)</script>"]))
    text = source(run)
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_new_clients_have_their_figures_their_differences_and_the_sentence(run):
    text = Page(source(run)).text
    assert "Each of a, b in its turn was left out of the shared training" in text
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
    text = Page(source(run)).text
    assert "left out of the shared training" not in text
    assert run.summary()["new_clients"] == {}


def test_new_clients_of_models_without_a_guarantee_are_marked(run):
    assert "NOT PRIVATE" not in Page(source(run)).text
    private = {"epsilon_max": "inf", "guarantee": "none"}
    path = paths.new_clients("digits", "datalens") / "results.json"
    run.edit(path, lambda content: content["privacy"].update(a=private))
    assert (
        "NOT PRIVATE: no guarantee holds for what the models of datalens learnt from."
        in Page(source(run)).text
    )
