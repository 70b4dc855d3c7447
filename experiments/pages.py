"""Writes an experiment's page in Markdown: its notes, a table per data set, the picture.

The notes say how the figures were made, and why the paper's beside them do not compare. They are
the files notes/NAME.md; what several pages say stands in notes/shared/.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from experiments.summaries import by
from pipelines.evaluation import image_quality
from pipelines.evaluation.metrics import METRICS, other_metrics
from pipelines.reporting.findings import marked
from pipelines.reporting.formatting import amount, bound, number

NOTES = Path(__file__).parent / "notes"

# A header, and the text of a row's cell below it.
Column = tuple[str, Callable[[dict], str]]
# Columns that follow from a table of metrics are made when a page is written.
Columns = list[Column | Callable[[], list[Column]]]


def figure(header: str, field: str, form: str = ".3f") -> Column:
    """Returns a column of numbers.

    Args:
        header: Its heading.
        field: The field of a row.
        form: Format specification of the numbers.
    """
    return header, lambda row: number(row[field], form)


def text(header: str, field: str) -> Column:
    """Returns a column of texts, with a dash for an empty one."""
    return header, lambda row: row[field] or "–"


def interval(header: str, field: str) -> Column:
    """Returns a column of differences with the ends of their intervals."""

    def shown(row: dict) -> str:
        if row[field] is None:
            return "–"
        difference = number(row[field], "+.3f")
        low = number(row[f"{field}_low"], "+.3f")
        high = number(row[f"{field}_high"], "+.3f")
        return f"{difference} [{low}, {high}]"

    return header, shown


def other_metric_columns() -> list[Column]:
    """Returns a column of every metric but accuracy."""
    return [figure(metric.heading, metric.name, metric.form) for metric in other_metrics()]


def selected_columns() -> list[Column]:
    """Returns the columns of selected rounds: by validation, then the best on test data."""
    columns = [figure("validation-selected", "selected_mean_accuracy")]
    for metric in METRICS:
        header = f"{metric.best_heading}, test-selected"
        columns.append(figure(header, f"{metric.best_key}_test_selected", metric.form))
    return columns


def image_metric_columns() -> list[Column]:
    """Returns two columns of every shown image metric: synthetic and real images."""
    columns = []
    for metric in image_quality.on_pages():
        columns.append(figure(metric.heading, metric.name, metric.form))
        header = f"{metric.heading} of real images"
        columns.append(figure(header, f"{metric.name}_floor", metric.form))
    return columns


DIFFERENCE = interval("less `local` [95 %]", "over_local")
OURS = interval("`pppfl` less it [95 %]", "pppfl_over_it")
PAPER = [figure("paper: BMTA", "published_bmta"), figure("paper: BMT-F1", "published_bmt_f1")]
CELLS = ("cells", lambda row: str(row["cells"]))
OUTCOME = [
    ("method", lambda row: marked(f"`{row['method']}`", row)),
    text("images", "generator"),
    CELLS,
    figure("accuracy", "accuracy"),
    DIFFERENCE,
    interval("less `random_init` [95 %]", "over_random_init"),
    OURS,
    text("in each seed", "pppfl_by_seed"),
]
ROUNDS = figure("rounds", "rounds", ".0f")
EVERYONES = [
    figure("before it, global test set", "global_before"),
    figure("after it, global test set", "global_after"),
    figure("there without own class shares", "global_elsewhere"),
]
# Earlier runs may have none: then there is no column.
SHOWN_WHERE_KEPT = (
    "after it, global test set",
    "there without own class shares",
    "up",
    "down",
    "seconds",
)
EPSILON = ("epsilon", lambda row: "0" if row["epsilon_max"] == 0 else bound(row["epsilon_max"]))
COST = [
    ("up", lambda row: amount(row["bytes_up"])),
    ("down", lambda row: amount(row["bytes_down"])),
    figure("seconds", "seconds", ".0f"),
    figure("at home", "seconds_at_home", ".0f"),
]
METHODS = [
    *OUTCOME,
    figure("worst client", "worst"),
    figure("spread", "spread"),
    other_metric_columns,
    figure("before fine-tuning", "accuracy_before"),
    *EVERYONES,
    selected_columns,
    *PAPER,
    EPSILON,
    ROUNDS,
    *COST,
]
ROADS = [
    *OUTCOME,
    other_metric_columns,
    figure("before fine-tuning", "accuracy_before"),
    *EVERYONES,
    EPSILON,
    ROUNDS,
    *COST,
]
FLOWS = [
    text("trained on / tested on", "flow"),
    ("method", lambda row: f"`{row['method']}`"),
    text("images", "generator"),
    CELLS,
    figure("accuracy", "accuracy"),
    other_metric_columns,
    DIFFERENCE,
    *PAPER,
]
EPSILONS = [
    text("images", "generator"),
    text("epsilons", "epsilon"),
    CELLS,
    figure("accuracy", "accuracy"),
    interval("less infinite epsilon [95 %]", "over_inf"),
    other_metric_columns,
    figure("inception score", "inception_score"),
    figure("of real images", "inception_score_real"),
    figure("its classifier's accuracy", "judge_accuracy"),
    image_metric_columns,
    *PAPER,
    figure("paper: inception score", "published_inception_score"),
    figure("paper: FID", "published_fid", ".5g"),
]
STABILISERS = [
    text("images", "generator"),
    text("stabilisers", "stabilisers"),
    CELLS,
    figure("accuracy", "accuracy"),
    interval("less neither [95 %]", "over_neither"),
    other_metric_columns,
    figure("shared model, global test set", "shared_accuracy"),
    figure("after its inner steps, synthetic query images", "query_accuracy"),
    selected_columns,
]
NEWCOMERS = [
    ("labels", lambda row: str(row["labels"])),
    ("model handed out", lambda row: f"`{row['method']}`"),
    CELLS,
    figure("own test part", "accuracy"),
    figure("global test set", "global_accuracy"),
    interval("less `random_init` [95 %]", "over_random_init"),
    OURS,
    text("newcomers with `pppfl` ahead", "pppfl_ahead"),
    *COST[:3],
]
GAINS = [
    text("images", "generator"),
    ("alone", lambda row: f"`{row['base']}`"),
    ("cells", lambda row: str(row["n"])),
    figure("Spearman", "spearman", "+.2f"),
    figure("p", "p", ".2g"),
    figure("Spearman, pairs permuted", "spearman_permuted", "+.2f"),
    figure("p against that", "p_permuted", ".2g"),
    figure("paper: Spearman, 5 clients", "published_spearman", "+.2f"),
]


def notes(name: str) -> list[str]:
    """Returns the paragraphs of notes/NAME.md, each on one line."""
    environment = Environment(loader=FileSystemLoader(NOTES), undefined=StrictUndefined)
    written = environment.get_template(f"{name}.md").render()
    return [" ".join(paragraph.split()) for paragraph in written.strip().split("\n\n")]


def page(
    name: str,
    title: str,
    paragraphs: list[str],
    columns: Columns,
    rows: list[dict],
    seeds: dict[str, list[int]],
) -> str:
    """Returns the whole page.

    Args:
        name: Name of the experiment.
        title: Its heading.
        paragraphs: What stands above the tables.
        columns: Columns of the tables.
        rows: What a function of `tables` or `variant_tables` returned.
        seeds: The seeds of each data set's runs.
    """
    columns = [column for column in _made(columns) if _has_figures(column, rows)]
    parts = [f"# {title}", f"`python -m experiments {name}`", *paragraphs]
    for dataset, dataset_rows in by(rows, "dataset").items():
        word = "seeds" if len(seeds[dataset]) > 1 else "seed"
        parts.append(f"## {dataset}, {word} {', '.join(map(str, seeds[dataset]))}")
        parts.append(_table(columns, dataset_rows))
    parts.append(f"![{title}]({name}.png)")
    return "\n\n".join(parts) + "\n"


def _made(columns: Columns) -> list[Column]:
    """Returns the columns, with those that follow from a table of metrics made."""
    made = []
    for column in columns:
        made += column() if callable(column) else [column]
    return made


def _has_figures(column: Column, rows: list[dict]) -> bool:
    """Returns whether to show a column: one of SHOWN_WHERE_KEPT only if any run has its figure."""
    header, show = column
    return header not in SHOWN_WHERE_KEPT or any(show(row) != "–" for row in rows)


def _table(columns: list[Column], rows: list[dict]) -> str:
    """Returns a table in Markdown."""
    headers, shows = zip(*columns)
    lines = [_line(headers), _line(["---"] * len(columns))]
    for row in rows:
        lines.append(_line(str(show(row)) for show in shows))
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    """Returns one line of a table."""
    return f"| {' | '.join(cells)} |"
