"""Lists the experiments by name, with their runs, table, page and picture."""

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from experiments import pages, plots, store, tables, variant_tables
from experiments.summaries import by
from pipelines.files import write_csv, write_text
from pipelines.reporting import canvas


@dataclass(frozen=True)
class Experiment:
    """Describes one experiment and what is shown of it.

    Attributes:
        store: The plan that is run and stored (`plans.STORES`). Table IV and Fig. 4 read the
            runs of Table II.
        title: Heading of its page; the page's notes are notes/NAME.md.
        table: Makes the rows of its table from stored runs.
        columns: Columns of its page.
        picture: Draws the picture from those rows and the stored runs.
    """

    store: str
    title: str
    table: Callable[[list[dict]], list[dict]]
    columns: pages.Columns
    picture: Callable[[list[dict], list[dict]], Figure]


EXPERIMENTS = {
    "table2": Experiment(
        "table2",
        "Table II: every method, private generators",
        tables.table2,
        pages.METHODS,
        plots.differences,
    ),
    "table3": Experiment(
        "table3",
        "Table III: a GAN without privacy",
        tables.table3,
        pages.METHODS,
        plots.differences,
    ),
    "table4": Experiment(
        "table2",
        "Table IV: where the data flows",
        tables.table4,
        pages.FLOWS,
        plots.differences,
    ),
    "table5": Experiment(
        "table5",
        "Table V and Fig. 3: what epsilon buys",
        variant_tables.table5,
        pages.EPSILONS,
        plots.against_epsilon,
    ),
    "figure2": Experiment(
        "figure2",
        "Fig. 2: PPPFL's stabilisers",
        variant_tables.figure2,
        pages.STABILISERS,
        plots.stabilisers,
    ),
    "figure4": Experiment(
        "table2",
        "Fig. 4: gain against local accuracy",
        tables.figure4,
        pages.GAINS,
        plots.gains,
    ),
    "roads": Experiment(
        "roads",
        "Which road: images first, or noisy training, from equal budgets",
        tables.roads,
        pages.ROADS,
        plots.differences,
    ),
    "newcomers": Experiment(
        "newcomers",
        "Newcomers: what a shared model is worth to a client with few labels",
        variant_tables.newcomers,
        pages.NEWCOMERS,
        plots.newcomers,
    ),
}


def write(name: str, rows: list[dict]) -> None:
    """Writes NAME.csv, NAME.md and NAME.png into the folder of results, from stored runs."""
    experiment = EXPERIMENTS[name]
    table = experiment.table(rows)
    seeds = {}
    for dataset, runs in by(rows, "dataset").items():
        seeds[dataset] = sorted({run["seed"] for run in runs})
    write_csv(store.RESULTS / f"{name}.csv", table)
    notes = pages.notes(name)
    page = pages.page(name, experiment.title, notes, experiment.columns, table, seeds)
    write_text(store.RESULTS / f"{name}.md", page)
    canvas.save(experiment.picture(table, rows), store.RESULTS / f"{name}.png")
