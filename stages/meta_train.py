"""meta_train@DATASET-GENERATOR: PPPFL's initial model, from the clients' synthetic sets and nothing else.

What it cost is kept apart, at home: a clock says something else each time."""

from functools import partial

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import exports
from pipelines.datasets.secrets import season
from pipelines.federation import outcome
from pipelines.federation.algorithms import pppfl
from pipelines.federation.task import Task, federate
from pipelines.files import new_folder, write_csv, write_json
from pipelines.training import classify
from pipelines.training.tensors import device
from stages.cli import main


def run(params: Params, dataset: str, generator: str) -> None:
    settings, profile, clients = params.training(dataset, "meta"), params.profiles[dataset], list(params.clients)
    task = Task(
        data=exports.images(dataset, clients, generator),
        build=partial(classify.new, profile, seeds.derive(params.seed, "init", dataset), device(params.device)),
        augmentation=profile.augmentation,
        epsilons={client: params.clients[client].epsilon for client in clients},
        seed=seeds.derive(params.seed, "meta_train", dataset, generator),
    )
    history = federate("pppfl", task, settings)
    curves = [
        {**row, "outer_learning_rate": pppfl.outer_learning_rate(settings, row["round"])} for row in history.curves
    ]
    of = dataset, clients, generator
    with new_folder(paths.initial(dataset, generator)) as folder:
        outcome.save_models(folder / "rounds.safetensors", history.models)
        write_csv(folder / "rounds.csv", curves)
        write_json(folder / "privacy.json", {**exports.privacy(*of), "releases": exports.releases(*of)})
    with new_folder(paths.cost(dataset, generator)) as folder:
        write_json(folder / paths.COST, history.cost)
        season(folder, dataset, "all-clients")
    last = curves[-1]
    print(f"{dataset}/{generator}: query loss {last['query_loss']:.3f}, accuracy {last['query_accuracy']:.3f}")


if __name__ == "__main__":
    main(run, "dataset", "generator")
