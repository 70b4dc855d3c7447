"""The whole folder of reports: for each data set its summary, tables and pictures, and one page over all."""

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
    summary,
    tables,
)


def write(folder: Path, params: Params) -> list[dict]:
    """Fills `folder` and returns the summaries.

    Raises:
        UserError: an artifact of the run is missing or cannot be read.
    """
    reports = [_dataset(folder / dataset, params, dataset) for dataset in params.datasets]
    (folder / "index.html").write_text(html.page(params, reports))
    return [report["summary"] for report in reports]


def _dataset(folder: Path, params: Params, dataset: str) -> dict:
    run = collect.read(params, dataset)
    facts = summary.build(params, dataset, run)
    bounds = [name for name, entry in facts["methods"].items() if entry["upper_bound"]]
    figures = {
        "methods": plots.methods(facts),
        "rounds": plots.rounds(run["curves"], params.synthesis.generators, bounds),
        "epsilon": epsilon_plot.epsilon(facts),
    }
    newcomers = view(run, params.seed)
    if newcomers:
        figures["new_clients"] = new_clients_plot.new_clients(newcomers["points"])
    folder.mkdir()
    write_json(folder / "summary.json", facts)
    write_json(folder / "metrics.json", tables.metrics(facts))
    write_csv(folder / "rounds.csv", tables.rounds(run["curves"], "accuracy_after"))
    write_csv(folder / "global_rounds.csv", tables.rounds(run["curves"], "global_accuracy"))
    write_csv(folder / "epsilon.csv", tables.epsilon(facts))
    write_csv(folder / "methods.csv", tables.methods(facts))
    write_csv(folder / "new_clients.csv", tables.new_clients(newcomers["points"] if newcomers else {}))
    for name, figure in figures.items():
        canvas.save(figure, folder / f"{name}.png")
    pictures = {name: (folder / f"{name}.png").read_bytes() for name in figures}
    return {"summary": facts, "grids": run["grids"], "pictures": pictures, "new_clients": newcomers}


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
