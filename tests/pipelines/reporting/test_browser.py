"""Opens the report in headless Chromium: errors, requests, folds, sorting, heights, barriers.

Screenshots lie in pytest's temporary folder. The tests are skipped where no Chromium is installed.
"""

import os
from pathlib import Path

import pytest

from pipelines import paths
from stages import report

CHROMIUM = Path("/usr/bin/chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")

# Before any fold is opened. Both sizes are those of the browser's window.
DESKTOP = {"width": 1400, "height": 1000}
PHONE = {"width": 390, "height": 844}
MOST_PIXELS = {1400: 3500, 390: 6000}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        # Chromium has no sandbox for root, and opens this page alone
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        yield started
        started.close()


@pytest.fixture
def reports(run) -> Path:
    report.run(run.params)
    return paths.REPORTS.resolve()


def opened(browser, path, size, events, **look):
    """Returns the page, opened; what went wrong and what it asked of a network goes to `events`."""
    page = browser.new_page(viewport=size, **look)
    page.on("console", lambda message: events.append(message.text))
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on("request", lambda request: events.append(request.url))
    page.goto(path.as_uri())
    return page


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")


def barriers(page) -> list[str]:
    """Returns what axe-core finds against level A and AA."""
    options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
    found = axe.Axe().run(page, options=options).response["violations"]
    return [f"{one['id']}: {node['html'][:120]}" for one in found for node in one["nodes"]]


def first_column(page) -> list[str]:
    rows = page.locator("table.sortable").first.locator("tbody tr:not([hidden]) th")
    return rows.all_inner_texts()


def test_it_opens_without_errors_and_requests_is_short_and_has_no_barriers(
    browser, reports, tmp_path_factory
):
    shots = tmp_path_factory.mktemp("screenshots")
    for size, colours in ((DESKTOP, "light"), (PHONE, "dark")):
        events = []
        page = opened(browser, reports / "index.html", size, events, color_scheme=colours)
        width = size["width"]
        page.screenshot(path=shots / f"{width}-{colours}.png")
        assert events == [(reports / "index.html").as_uri()]
        assert page.evaluate("document.documentElement.scrollHeight") <= MOST_PIXELS[width]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        answers = page.locator(".answer").all()
        assert len(answers) == 4 and all(answer.is_visible() for answer in answers)
        unfold(page)
        page.screenshot(path=shots / f"{width}-{colours}-open.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert barriers(page) == []
        page.close()


def test_the_answers_stand_on_the_first_screen_of_a_desktop(browser, reports):
    page = opened(browser, reports / "index.html", DESKTOP, [])
    for shown in (".answer", ".grids img", ".dots tbody tr", ".clients tbody tr"):
        for one in page.locator(f".first {shown}").all():
            box = one.bounding_box()
            assert box["y"] + box["height"] <= DESKTOP["height"]
    page.close()


def test_a_clients_page_has_no_errors_requests_or_barriers(browser, reports):
    own = reports / "digits" / "clients" / "a.html"
    events = []
    page = opened(browser, own, PHONE, events)
    assert events == [own.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert barriers(page) == []
    page.close()


def test_folds_open_by_keyboard_and_a_table_is_sorted_and_filtered(browser, reports):
    page = opened(browser, reports / "index.html", DESKTOP, [])
    fold = page.locator("details.fold").first
    table = page.locator("table.sortable").first
    assert not table.is_visible()
    fold.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert table.is_visible()

    before = first_column(page)
    head = table.locator("thead th").nth(1)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    falling = first_column(page)
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert first_column(page) == falling[::-1] != falling
    assert sorted(before) == sorted(falling)
    values = table.locator("tbody td:nth-child(2)").evaluate_all(
        "cells => cells.map((cell) => Number(cell.dataset.value))"
    )
    assert values == sorted(values)

    page.locator("input[type=search]").first.fill("DP_MOMENTS fed")
    assert first_column(page) == ["fedavg/dp_moments"]
    assert page.locator("output").first.inner_text() == f"1 of {len(before)} rows"
    page.close()


def test_without_script_everything_can_be_read(browser, reports):
    context = browser.new_context(java_script_enabled=False, viewport=DESKTOP)
    page = context.new_page()
    page.goto((reports / "index.html").as_uri())
    page.locator("details.fold > summary").first.click()
    assert page.locator("table.sortable").first.is_visible()
    assert page.locator("button, input").count() == 0
    context.close()


def test_a_barrier_is_found(browser, reports):
    page = opened(browser, reports / "index.html", DESKTOP, [])
    page.evaluate("document.querySelector('.grids img').removeAttribute('alt')")
    assert any(found.startswith("image-alt") for found in barriers(page))
    page.close()
