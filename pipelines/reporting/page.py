"""Writes the folder of reports: for each data set its summary, tables and pictures, and one page.

index.html holds everything that it shows, for a reader without a network. What `dvc metrics` and
`dvc plots` can read lies in separate folders, a file per data set. dvc.yaml must not name them: DVC
would put them into every experiment's Git commit.
"""

import base64
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipelines import words
from pipelines.config import Params
from pipelines.evaluation import image_quality
from pipelines.evaluation.metrics import other_metrics
from pipelines.files import write_csv, write_json
from pipelines.privacy.statement import NOT_COVERED
from pipelines.reporting import (
    canvas,
    collect,
    comparisons,
    epsilon_plot,
    findings,
    formatting,
    gains,
    new_clients,
    new_clients_plot,
    plots,
    summary,
    tables,
)

TEMPLATES = Path(__file__).parent
# With more clients than these, what there is of each is folded.
MANY = 10


def write(folder: Path, params: Params) -> list[dict]:
    """Fills the folder and returns the summaries, one per data set.

    Args:
        folder: An existing empty folder.
        params: The parameters of the run.

    Raises:
        UserError: An artifact of the run is missing or cannot be read.
    """
    reports = []
    summaries = []
    for dataset in params.datasets:
        report = _dataset(folder, params, dataset)
        reports.append(report)
        summaries.append(report["summary"])
    (folder / "index.html").write_text(render(params, reports))
    return summaries


def render(params: Params, reports: list[dict]) -> str:
    """Returns index.html as text.

    Args:
        params: The parameters of the run.
        reports: For each data set "summary": what `summary.build` returned, "grids": {CLIENT:
            {GENERATOR: PNG bytes}}, "pictures": {NAME: PNG bytes}, "roads": what `findings.roads`
            returned, "new_clients": what `new_clients_view` returned, and, where the cards name
            the classes, "class_names": their names by label.
    """
    template = _environment().get_template("template.html.j2")
    views = []
    for report in reports:
        facts = findings.facts(report["summary"])
        warnings = findings.warnings(report["summary"])
        worth = gains.sentences(report["summary"], params.synthesis.generators)
        view = {"class_names": [], **report}
        views.append({**view, "facts": facts, "warnings": warnings, "worth": worth})
    return template.render(params=params, reports=views, not_covered=NOT_COVERED)


def data_uri(png: bytes) -> str:
    """Returns a picture as an address that holds its bytes.

    Example:
        >>> data_uri(b"png")
        'data:image/png;base64,cG5n'
    """
    return "data:image/png;base64," + base64.b64encode(png).decode()


def new_clients_view(run: dict, seed: int) -> dict | None:
    """Returns what the page's section on new clients needs beside the summary.

    Args:
        run: What `collect.read` returned.
        seed: Seed of the run, from which the intervals' seeds are derived.

    Returns:
        {"points", "held_out", "remarks"}, or None if no client was held out.
    """
    studies = run["new_clients"]
    if not studies:
        return None
    held_out = set()
    for study in studies.values():
        held_out.update(study["held_out"])
    return {
        "points": new_clients.points(studies, seed),
        "held_out": sorted(held_out),
        "remarks": new_clients.remarks(studies),
    }


def _class_names(cards: dict[str, dict[str, dict]]) -> list[str]:
    """Returns the names of the classes by label, as the cards have them, or an empty list."""
    for by_generator in cards.values():
        for card in by_generator.values():
            datasheet = card.get("datasheet")
            names = datasheet.get("class_names") if isinstance(datasheet, dict) else None
            if isinstance(names, list):
                return names
    return []


def _environment() -> Environment:
    """Returns jinja's environment with all that the templates call."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": formatting.number,
        "bound": formatting.bound,
        "amount": formatting.amount,
        "names": words.names,
        "png": data_uri,
        "not_private": findings.not_private,
        "apart_last": findings.apart_last,
        "sentences": comparisons.sentences,
        "newcomers": new_clients.sentences,
    }
    environment.globals |= {
        "best": findings.best,
        "accounts": findings.accounts,
        "other_metrics": other_metrics,
        "image_metrics": image_quality.on_pages,
        "UPPER_BOUND": findings.UPPER_BOUND,
        "MANY": MANY,
    }
    return environment


def _dataset(reports: Path, params: Params, dataset: str) -> dict:
    """Writes the files of one data set and returns what the page shows of it."""
    # 1. Read the run and work out what it says.
    run = collect.read(params, dataset)
    facts = summary.build(params, dataset, run)
    newcomers = new_clients_view(run, params.seed)

    # 2. Draw and tabulate it.
    figures = {
        "methods": plots.methods(facts),
        "rounds": plots.rounds(run["curves"], params.synthesis.generators, facts["methods"]),
        "epsilon": epsilon_plot.epsilon(facts),
    }
    if newcomers:
        figures["new_clients"] = new_clients_plot.new_clients(newcomers["points"])
    curves = {
        "rounds": tables.rounds(run["curves"], "accuracy_after"),
        "global_rounds": tables.rounds(run["curves"], "global_accuracy"),
        "epsilon": tables.epsilon(facts),
        "new_clients": tables.new_clients(newcomers["points"] if newcomers else {}),
    }

    # 3. Write the files.
    folder = reports / dataset
    folder.mkdir(parents=True, exist_ok=True)
    (reports / "metrics").mkdir(parents=True, exist_ok=True)
    write_json(reports / "metrics" / f"{dataset}.json", tables.metrics(facts))
    for name, rows in curves.items():
        (reports / "plots" / name).mkdir(parents=True, exist_ok=True)
        write_csv(reports / "plots" / name / f"{dataset}.csv", rows)
    write_json(folder / "summary.json", facts)
    write_csv(folder / "methods.csv", tables.methods(facts))
    pictures = {}
    for name, figure in figures.items():
        canvas.save(figure, folder / f"{name}.png")
        pictures[name] = (folder / f"{name}.png").read_bytes()
    noisy = params.dp_baselines.algorithms
    return {
        "summary": facts,
        "grids": run["grids"],
        "class_names": _class_names(run["cards"]),
        "pictures": pictures,
        "roads": findings.roads(facts, params.synthesis.generators, noisy),
        "new_clients": newcomers,
    }
