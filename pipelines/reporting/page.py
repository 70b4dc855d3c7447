"""Writes the folder of reports: for each data set its summary and tables, one page, and clients' pages.

index.html holds everything that it shows, for a reader without a network: every client's scores. It
is for the experimenter alone. DATASET/clients/CLIENT.html is what that client may keep
(`client_page`). What `dvc metrics` and `dvc plots` can read lies in separate folders, a file per data
set. dvc.yaml must not name them: DVC would put them into every experiment's Git commit.
"""

from pathlib import Path

from pipelines.config import Params
from pipelines.files import write_csv, write_json
from pipelines.privacy.statement import not_covered
from pipelines.reporting import client_page, collect, summary, tables, views
from pipelines.reporting.environment import environment


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
    """Returns index.html as text. Equal arguments give equal bytes.

    Args:
        params: The parameters of the run.
        reports: For each data set what `views.of_dataset` returned.
    """
    template = environment().get_template("index.html.j2")
    clients = []
    for report in reports:
        clients += report["summary"]["clients"].values()
    return template.render(params=params, reports=reports, not_covered=not_covered(clients))


def _dataset(reports: Path, params: Params, dataset: str) -> dict:
    """Writes the files of one data set and returns what the page shows of it."""
    # 1. Read the run and work out what it says.
    run = collect.read(params, dataset)
    facts = summary.build(params, dataset, run)
    view = views.of_dataset(params, run, facts)
    newcomers = view["new_clients"]

    # 2. Write what programs read.
    folder = reports / dataset
    folder.mkdir(parents=True, exist_ok=True)
    (reports / "metrics").mkdir(parents=True, exist_ok=True)
    write_json(reports / "metrics" / f"{dataset}.json", tables.metrics(facts))
    curves = {
        "rounds": tables.rounds(run["curves"], "accuracy_after"),
        "global_rounds": tables.rounds(run["curves"], "global_accuracy"),
        "epsilon": tables.epsilon(facts),
        "new_clients": tables.new_clients(newcomers["points"] if newcomers else {}),
    }
    for name, rows in curves.items():
        (reports / "plots" / name).mkdir(parents=True, exist_ok=True)
        write_csv(reports / "plots" / name / f"{dataset}.csv", rows)
    write_json(folder / "summary.json", facts)
    write_csv(folder / "methods.csv", tables.methods(facts))

    # 3. Write a page for each client.
    (folder / "clients").mkdir(exist_ok=True)
    for client in params.clients:
        text = client_page.render(client_page.facts(client, facts, run))
        (folder / "clients" / f"{client}.html").write_text(text)
    return view
