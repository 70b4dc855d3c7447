"""meta_train@DATASET-GENERATOR: PPPFL's initial model, from the clients' synthetic sets and nothing else.

What it cost is kept apart, at home: a clock says something else each time."""

from pipelines import paths, scratch
from pipelines.config import Params
from pipelines.datasets import exports
from pipelines.datasets.secrets import season
from pipelines.federation import outcome
from pipelines.federation.algorithms import pppfl
from pipelines.federation.engines.choice import on_synthetic
from pipelines.federation.runs import Run
from pipelines.files import new_folder, write_csv, write_json
from stages.cli import main


def run(params: Params, dataset: str, generator: str) -> None:
    settings, of = params.training(dataset, "meta"), (dataset, list(params.clients), generator)
    privacy = {**exports.privacy(*of), "releases": exports.releases(*of)}  # a missing card is told before the rounds
    with scratch.unfinished(f"meta_train-{dataset}-{generator}") as unfinished:
        history = on_synthetic(params, Run(dataset, "pppfl", generator), unfinished)
        curves = [
            {**row, "outer_learning_rate": pppfl.outer_learning_rate(settings, row["round"])} for row in history.curves
        ]
        with new_folder(paths.initial(dataset, generator)) as folder:
            outcome.save_models(folder / "rounds.safetensors", history.models)
            write_csv(folder / "rounds.csv", curves)
            write_json(folder / "privacy.json", privacy)
        with new_folder(paths.cost(dataset, generator)) as folder:
            write_json(folder / paths.COST, history.cost)
            season(folder, dataset, "all-clients")
    last = curves[-1]
    print(f"{dataset}/{generator}: query loss {last['query_loss']:.3f}, accuracy {last['query_accuracy']:.3f}")


if __name__ == "__main__":
    main(run, "dataset", "generator")
