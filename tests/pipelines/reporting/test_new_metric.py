"""Tests that a metric which is added to its table alone reaches results, summary, page and
experiments.
"""

import re
from functools import partial
from pathlib import Path

import kept_runs
import numpy as np
import pytest
import torch

from experiments import collect as experiments_collect
from experiments import pages, plots, tables, variant_tables
from models import classifiers
from pipelines import paths
from pipelines.config.training import FineTune
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from pipelines.errors import UserError
from pipelines.evaluation import image_quality, metrics
from pipelines.federation.home import fine_tuning
from pipelines.reporting import collect, findings, page
from pipelines.reporting import tables as report_tables
from pipelines.training.tensors import state_of

BUILD = partial(classifiers.build, "mlp", shape=(4, 4, 1), classes=2, seed=0)
SETTINGS = FineTune(epochs=1, batch=8, learning_rate=0.01, patience=20, every=1, shared_every=None)
ERROR = metrics.Metric(
    "error",
    lambda predicted, labels: float(np.mean(predicted != labels)),
    "share of errors",
    form=".5f",
    higher_is_better=False,
)
WIDTH = image_quality.ImageMetric("width", lambda pair: pair.fake.shape[1], "width of features")


@pytest.fixture
def error():
    """Adds a metric of which a smaller value is better."""
    metrics.METRICS.append(ERROR)
    yield
    metrics.METRICS.remove(ERROR)


@pytest.fixture
def width():
    """Adds an image metric that pages show."""
    image_quality.METRICS.append(WIDTH)
    yield
    image_quality.METRICS.remove(WIDTH)


def images(count: int, seed: int) -> Images:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (count, 4, 4, 1)).astype(np.uint8)
    return Images(pixels, rng.integers(0, 2, count), np.arange(count))


def fine_tuned() -> fine_tuning.Outcome:
    """Returns the outcome of two rounds for clients a and b."""
    shards = {
        client: Shard(images(40, seed), images(20, seed + 10), images(30, seed + 20))
        for seed, client in enumerate("ab")
    }
    models = [state_of(BUILD()), state_of(BUILD()), state_of(BUILD())]
    return fine_tuning.through_rounds(
        models, shards, images(50, 99), build=BUILD, settings=SETTINGS, seed=0
    )


def folders(run) -> list[Path]:
    return list(collect.method_folders(run.params, "digits").values())


def test_it_is_in_a_clients_results_and_the_least_round_is_the_best(error):
    outcome = fine_tuned()
    for scored in outcome.summary["clients"].values():
        for moment in ("before", "after"):
            assert scored[moment]["error"] == pytest.approx(1 - scored[moment]["accuracy"])
    curve = [row["error_after"] for row in outcome.curve if row["round"] > 0]
    assert outcome.summary["bmt_error"] == min(curve)
    assert outcome.summary["selected"]["error"] in curve


def test_it_follows_from_results_to_summary_page_and_experiments(error, run):
    outcome = fine_tuned().summary
    for folder in folders(run):
        run.edit(folder / "results.json", lambda content: content.update(outcome))

    # The report: the summary, its table and its page.
    summary = run.summary()
    mean_error = 1 - summary["methods"]["local"]["mean_accuracy"]
    assert summary["methods"]["local"]["mean_error"] == pytest.approx(mean_error)
    row = report_tables.methods(summary)[0]
    assert row["mean_error"] == pytest.approx(mean_error)
    assert row["selected_error"] == outcome["selected"]["error"]
    assert row["bmt_error_test_selected"] == outcome["bmt_error"]
    text = run.source()
    assert ">Share of errors</th>" in text
    assert re.search(rf'<td class="best" data-value="[0-9.]+">{mean_error:.5f}<', text)

    # The experiments: what is kept of the run, its table and its page.
    folder = paths.baseline("digits", "local") / "local"
    kept = kept_runs.run(0, {"local": experiments_collect._method(folder)})
    table = tables.table2([kept])
    assert table[0]["error"] == pytest.approx(mean_error)
    written = pages.page("t", "T", [], pages.METHODS, table, {"mnist": [0]})
    header = written.splitlines()[6]
    assert "| share of errors |" in header and "| BMT-ERROR, test-selected |" in header
    assert f"| {mean_error:.5f} |" in written


def test_runs_that_were_kept_before_it_leave_its_column_empty(error):
    table = tables.table2([kept_runs.run(0, {"local": kept_runs.method(0.8, 0.6)})])
    assert table[0]["error"] is None and table[0]["bmt_error_test_selected"] is None
    assert table[0]["macro_f1"] == pytest.approx(0.6)
    assert "| – |" in pages.page("t", "T", [], pages.METHODS, table, {"mnist": [0]})


def test_the_best_method_has_the_least_value_where_less_is_better():
    methods = {"a": 0.1, "b": 0.3}
    summary = {
        "methods": {
            name: {"mean_error": value, "upper_bound": False, "collapsed": ""}
            for name, value in methods.items()
        }
    }
    assert findings.best(summary, "mean_error", lowest=True) == "a"
    assert findings.best(summary, "mean_error") == "b"


def test_an_image_metric_follows_from_features_to_page_and_experiments(width, run):
    features = {"features": torch.rand(20, 6), "logits": torch.rand(20, 3)}
    value = image_quality.fidelity(features, features, seed=0)["width"]
    assert value == 6.0
    for client in "ab":
        for generator in run.params.synthesis.generators:
            path = paths.quality("digits", client, generator) / "quality.json"
            run.edit(path, lambda scores: scores.update(width=value, width_floor=value - 1))
    release = run.summary()["clients"]["a"]["generators"]["datalens"]
    assert (release["width"], release["width_floor"]) == (6.0, 5.0)
    folder = Path("written")
    folder.mkdir()
    page.write(folder, run.params)
    text = (folder / "index.html").read_text()
    assert ">width of features, real floor</th>" in text
    assert "<td>6<small>floor 5<" in text
    headers = [header for header, _ in pages.image_metric_columns()]
    assert headers == [
        "FID",
        "FID of real images",
        "width of features",
        "width of features of real images",
    ]
    assert "width" in plots._epsilon_panels()
    row = {
        "fidelity": {"clients": {"x": {"c0": {"width": 6.0}, "c1": {"width": 8.0}}}},
    }
    assert variant_tables._fidelity([row], "x", "width") == 7.0


def test_an_image_metric_that_a_quality_file_lacks_is_named(width, run):
    with pytest.raises(UserError, match=r"quality\.json lacks 'width'"):
        run.read()
