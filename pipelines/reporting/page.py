"""The whole folder of reports: for each data set its summary, tables and pictures, and one page over all.

What `dvc metrics` and `dvc plots` can read lies in folders of its own, a file per data set. dvc.yaml must not name
them: DVC would put them into every experiment's Git commit.
"""

from pathlib import Path

from pipelines.config import Params
from pipelines.files import write_csv, write_json
from pipelines.reporting import (
    canvas,
    collect,
    epsilon_plot,
    html,
    new_clients,
    new_clients_plot,
    plots,
    roads,
    summary,
    tables,
)


def write(folder: Path, params: Params) -> list[dict]:
    """Fills `folder` and returns the summaries.

    Raises:
        UserError: an artifact of the run is missing or cannot be read.
    """
    reports = [_dataset(folder, params, dataset) for dataset in params.datasets]
    (folder / "index.html").write_text(html.page(params, reports))
    return [report["summary"] for report in reports]


def _dataset(reports: Path, params: Params, dataset: str) -> dict:
    run = collect.read(params, dataset)
    facts = summary.build(params, dataset, run)
    figures = {
        "methods": plots.methods(facts),
        "rounds": plots.rounds(run["curves"], params.synthesis.generators, facts["methods"]),
        "epsilon": epsilon_plot.epsilon(facts),
    }
    newcomers = view(run, params.seed)
    if newcomers:
        figures["new_clients"] = new_clients_plot.new_clients(newcomers["points"])
    curves = {
        "rounds": tables.rounds(run["curves"], "accuracy_after"),
        "global_rounds": tables.rounds(run["curves"], "global_accuracy"),
        "epsilon": tables.epsilon(facts),
        "new_clients": tables.new_clients(newcomers["points"] if newcomers else {}),
    }
    folder = reports / dataset
    for own in (folder, reports / "metrics", *(reports / "plots" / name for name in curves)):
        own.mkdir(parents=True, exist_ok=True)
    write_json(reports / "metrics" / f"{dataset}.json", tables.metrics(facts))
    for name, rows in curves.items():
        write_csv(reports / "plots" / name / f"{dataset}.csv", rows)
    write_json(folder / "summary.json", facts)
    write_csv(folder / "methods.csv", tables.methods(facts))
    for name, figure in figures.items():
        canvas.save(figure, folder / f"{name}.png")
    pictures = {name: (folder / f"{name}.png").read_bytes() for name in figures}
    ways = roads.rows(facts, params.synthesis.generators, params.dp_baselines.algorithms)
    return {
        "summary": facts,
        "grids": run["grids"],
        "pictures": pictures,
        "roads": ways,
        "new_clients": newcomers,
    }


def view(run: dict, seed: int) -> dict | None:
    """What the page's section on new clients needs beside the summary; None where no client was held out."""
    studies = run["new_clients"]
    if not studies:
        return None
    held_out = sorted({client for study in studies.values() for client in study["held_out"]})
    return {
        "points": new_clients.points(studies, seed),
        "held_out": held_out,
        "remarks": new_clients.remarks(studies),
    }
