"""scores@DATASET: takes from the report what `dvc metrics`, `dvc exp show` and `dvc plots` may show.

Of a user's own images both files stay empty: DVC puts them into the Git commit of an experiment.
"""

import json

from pipelines import paths
from pipelines.config import Params
from pipelines.files import read_csv, write_csv, write_json
from pipelines.reporting import public_scores
from stages.cli import main


def run(params: Params, dataset: str) -> None:
    """Writes metrics.json and rounds.csv.

    Args:
        params: The parameters.
        dataset: The data set's name.
    """
    profile = params.profiles[dataset]
    figures = {}
    rows = []
    if profile.is_public:
        summary = json.loads((paths.REPORTS / dataset / "summary.json").read_text())
        figures = public_scores.metrics(summary, profile)
        table = read_csv(paths.REPORTS / "plots" / "global_rounds" / f"{dataset}.csv")
        rows = public_scores.rounds(table, public_scores.columns(summary["methods"]))
    folder = paths.scores(dataset)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "metrics.json", figures)
    write_csv(folder / "rounds.csv", rows or [dict.fromkeys(public_scores.COLUMNS, "")])


if __name__ == "__main__":
    main(run, "dataset")
