import json
import re

import pytest

from pipelines import paths
from pipelines.errors import UserError
from pipelines.files import read_csv
from stages import report

PLOTS = ("rounds", "global_rounds", "epsilon", "new_clients")


def test_the_stage_writes_every_file(run):
    report.run(run.params)
    own = ("summary.json", "methods.csv", "clients/a.html", "clients/b.html")
    for_dvc = ("metrics/digits.json", *(f"plots/{name}/digits.csv" for name in PLOTS))
    found = {
        str(path.relative_to(paths.REPORTS)) for path in paths.REPORTS.rglob("*") if path.is_file()
    }
    assert found == {"index.html", "salt", *for_dvc, *(f"digits/{name}" for name in own)}
    own = paths.REPORTS / "digits"
    assert json.loads((own / "summary.json").read_text())["dataset"] == "digits"
    home, shared = (
        read_csv(paths.REPORTS / "plots" / name / "digits.csv")
        for name in ("rounds", "global_rounds")
    )
    assert (home[1]["round"], home[1]["pppfl/dp_moments"], shared[2]["pppfl/dp_moments"]) == (
        "3",
        "0.73",
        "0.3",
    )
    assert shared[1]["round"] == "2" and "local" not in home[1]


def test_a_missing_artifact_leaves_the_old_report_as_it_was(run):
    report.run(run.params)
    before = (paths.REPORTS / "index.html").read_text()
    (paths.quality("digits", "b", "dp_moments") / "quality.json").unlink()
    with pytest.raises(UserError):
        report.run(run.params)
    assert (paths.REPORTS / "index.html").read_text() == before


def test_every_link_to_a_file_leads_to_one(run):
    report.run(run.params)
    text = (paths.REPORTS / "index.html").read_text()
    links = [link for link in re.findall('href="([^"]+)"', text) if not link.startswith("#")]
    assert {"digits/methods.csv", "digits/clients/a.html"} <= set(links)
    assert all((paths.REPORTS / link).is_file() for link in links)


def test_equal_runs_give_equal_bytes(run):
    pages = []
    for _ in range(2):
        report.run(run.params)
        files = sorted(path for path in paths.REPORTS.rglob("*.html"))
        assert len(files) == 3
        pages.append([path.read_bytes() for path in files])
    assert pages[0] == pages[1]
