"""Pages of figures: each figure is read from a stored result, and the committed pages are these."""

import json
import re

import jinja2
import pytest

from benchmarks import common, figures

# what stands between braces is computed; the rest may hold no figure but settings
COMPUTED = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
# accuracies and gains
FIGURE = re.compile(r"[+-]?\b\d\.\d{2,}\b|[+-]\d\.\d")


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    monkeypatch.setattr(figures, "TEMPLATES", tmp_path)
    common.keep(
        "toy",
        [{"dataset": "a", "accuracy": 0.51234}, {"dataset": "b", "accuracy": 0.25}],
        ratio=2.0,
    )
    return tmp_path


@pytest.mark.parametrize("template", figures.PAGES)
def test_a_committed_page_is_what_the_command_writes(template):
    page = figures.PAGES[template].read_text()
    assert page == figures.written(template), f"run `make figures` and commit {template}'s page"


def test_no_template_holds_a_figure_of_its_own():
    templates = sorted(figures.TEMPLATES.glob("*.j2"))
    # some are parts of others
    assert {path.name for path in templates} > set(figures.PAGES)
    for path in templates:
        assert not FIGURE.findall(COMPUTED.sub("", path.read_text())), path


@pytest.mark.parametrize("text", ["0.964 of it", "gains +0.2", "a loss of -0.003", "1.04 times"])
def test_a_figure_in_prose_is_found(text):
    assert FIGURE.search(COMPUTED.sub("", text))


@pytest.mark.parametrize("text", ["epsilon 10", "Dirichlet 0.5", "{{ 0.964 | accuracy }}"])
def test_settings_and_computed_figures_are_none(text):
    assert not FIGURE.search(COMPUTED.sub("", text))


def test_a_page_reads_rows_and_summaries(results):
    (results / "page.j2").write_text(
        '{% set a = row("toy", dataset="a") %}\n'
        "{{ a.accuracy | accuracy }} {{ (a.accuracy - 0.52) | gain }} {{ 12000 | count }}"
        ' {{ stored("toy").ratio }} {{ rows("toy") | length }}{{ holds(a.accuracy > 0.5) }}\n'
    )
    assert figures.rendered("page.j2") == "0.512 -0.008 12,000 2.0 2\n"


def test_another_result_gives_another_page(results):
    (results / "page.j2").write_text('{{ row("toy", dataset="a").accuracy | accuracy }}')
    before = figures.rendered("page.j2")
    stored = json.loads((results / "toy.json").read_text())
    stored["rows"][0]["accuracy"] = 0.6
    (results / "toy.json").write_text(json.dumps(stored))
    assert (before, figures.rendered("page.j2")) == ("0.512\n", "0.600\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{{ row("toy", dataset="c").accuracy }}', "has no row with {'dataset': 'c'}"),
        ('{{ row("toy").accuracy }}', "has 2 rows"),
        ('{{ holds(row("toy", dataset="b").accuracy > 0.3) }}', "no longer follows"),
    ],
)
def test_a_page_that_the_results_do_not_carry_is_refused(results, text, message):
    (results / "page.j2").write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        figures.rendered("page.j2")


def test_a_column_that_does_not_exist_is_refused(results):
    (results / "page.j2").write_text('{{ row("toy", dataset="a").wrong | accuracy }}')
    with pytest.raises(jinja2.UndefinedError, match="wrong"):
        figures.rendered("page.j2")


def test_a_part_of_a_page_is_replaced_and_the_rest_stays(results, monkeypatch):
    path = results / "page.md"
    monkeypatch.setattr(figures, "PAGES", {"part.j2": path})
    (results / "part.j2").write_text('{{ row("toy", dataset="a").accuracy | accuracy }}')
    begin = figures.PART.format(template="part.j2")
    path.write_text(f"before\n{begin}old\n{figures.END}after\n")
    page = f"before\n{begin}0.512\n{figures.END}after\n"
    assert figures.written("part.j2") == page
    path.write_text(page)
    assert figures.written("part.j2") == page


def test_paragraphs_are_wrapped_and_tables_are_not():
    table = "| a | b |\n|---|---|\n| " + "word " * 60 + "| |"
    text = f"# Head\n\n\n{table}\n\n- one\n  item\n- {'word ' * 60}\n\n    code  here\n"
    lines = figures.wrapped(text).splitlines()
    assert lines[:5] == ["# Head", "", *table.splitlines()]
    assert lines[6] == "- one item" and lines[8].startswith("  word")
    assert lines[-1] == "    code  here"
    assert max(map(len, lines[6:])) <= figures.WIDTH


@pytest.mark.parametrize(
    ("value", "text"), [(0.0004, "0.000"), (-0.0004, "0.000"), (0.1, "+0.100")]
)
def test_a_gain_has_its_sign(value, text):
    assert figures.gain(value) == text
