"""An experiment's page in Markdown: what it is, why it is not like for like, a table per data set, the picture."""

from collections.abc import Callable

from experiments.summaries import by
from pipelines.reporting.findings import marked
from pipelines.reporting.formatting import amount, bound, number

Column = tuple[str, Callable[[dict], str]]


def figure(header: str, field: str, form: str = ".3f") -> Column:
    return header, lambda row: number(row[field], form)


def text(header: str, field: str) -> Column:
    return header, lambda row: row[field] or "–"


def interval(header: str, field: str) -> Column:
    def shown(row: dict) -> str:
        if row[field] is None:
            return "–"
        return "{} [{}, {}]".format(
            *(number(row[f"{field}{end}"], "+.3f") for end in ("", "_low", "_high"))
        )

    return header, shown


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
]
LATER = (
    "after it, global test set",
    "up",
    "down",
    "seconds",
)  # earlier runs may have none: then there is no column
EPSILON = ("epsilon", lambda row: "0" if row["epsilon_max"] == 0 else bound(row["epsilon_max"]))
COST = [
    ("up", lambda row: amount(row["bytes_up"])),
    ("down", lambda row: amount(row["bytes_down"])),
    figure("seconds", "seconds", ".0f"),
    figure("at home", "seconds_at_home", ".0f"),
]
SELECTED = [
    figure("validation-selected", "selected_mean_accuracy"),
    figure("BMTA, test-selected", "bmta_test_selected"),
    figure("BMT-F1, test-selected", "bmt_f1_test_selected"),
]
METHODS = [
    *OUTCOME,
    figure("worst client", "worst"),
    figure("spread", "spread"),
    figure("macro-F1", "macro_f1"),
    figure("before fine-tuning", "accuracy_before"),
    *EVERYONES,
    *SELECTED,
    *PAPER,
    EPSILON,
    ROUNDS,
    *COST,
]
ROADS = [
    *OUTCOME,
    figure("macro-F1", "macro_f1"),
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
    figure("macro-F1", "macro_f1"),
    DIFFERENCE,
    *PAPER,
]
EPSILONS = [
    text("images", "generator"),
    text("epsilons", "epsilon"),
    CELLS,
    figure("accuracy", "accuracy"),
    interval("less infinite epsilon [95 %]", "over_inf"),
    figure("macro-F1", "macro_f1"),
    figure("inception score", "inception_score"),
    figure("of real images", "inception_score_real"),
    figure("its classifier's accuracy", "judge_accuracy"),
    figure("FID", "fid", ".3g"),
    figure("FID of real images", "fid_floor", ".3g"),
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
    figure("macro-F1", "macro_f1"),
    figure("shared model, global test set", "shared_accuracy"),
    figure("after its inner steps, synthetic query images", "query_accuracy"),
    *SELECTED,
]
NEWCOMERS = [
    ("labels", lambda row: str(row["labels"])),
    ("rounds", lambda row: str(row["rounds"])),
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


def page(
    name: str,
    title: str,
    notes: str,
    columns: list[Column],
    rows: list[dict],
    seeds: dict[str, list[int]],
) -> str:
    """The whole file. rows: of a table of `tables.py`. seeds: of each data set's runs."""
    shown = [
        (header, show)
        for header, show in columns
        if header not in LATER or any(show(row) != "–" for row in rows)
    ]
    parts = [f"# {title}", f"`python -m experiments {name}`", *notes.split("\n\n")]
    for dataset, own in by(rows, "dataset").items():
        told = ", ".join(map(str, seeds[dataset]))
        parts += [
            f"## {dataset}, {'seeds' if len(seeds[dataset]) > 1 else 'seed'} {told}",
            _table(shown, own),
        ]
    return "\n\n".join([*parts, f"![{title}]({name}.png)"]) + "\n"


def _table(columns: list[Column], rows: list[dict]) -> str:
    lines = [[header for header, _ in columns], ["---"] * len(columns)]
    lines += [[str(show(row)) for _, show in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
