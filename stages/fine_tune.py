"""fine_tune@DATASET-GENERATOR: each client adapts PPPFL's initial model on its private records. Private."""

from functools import partial

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import labelled_images, shards
from pipelines.datasets.salting import add_salt_file
from pipelines.federation import health
from pipelines.federation.home import fine_tuning, results
from pipelines.files import new_folder, read_json, require
from pipelines.training import classifier
from pipelines.training.tensors import device
from stages.cli import main


def run(params: Params, dataset: str, generator: str) -> None:
    folder, profile = paths.initial(dataset, generator), params.profiles[dataset]
    made = paths.cost(dataset, generator) / paths.COST
    privacy, state, cost = (
        read_json(folder / "privacy.json"),
        read_json(folder / health.FILE),
        read_json(made),
    )
    require(folder / "privacy.json", privacy, "epsilon_max", "guarantee")
    require(folder / health.FILE, state, "collapsed", "why")
    require(made, cost, "rounds", "bytes_down", "bytes_up", "seconds")
    found = fine_tuning.through_rounds(
        results.load_models(folder / "rounds.safetensors"),
        shards.read_all(dataset, list(params.clients), profile),
        labelled_images.load(paths.prepared(dataset) / "test.npz", profile),
        build=partial(classifier.new, profile, 0, device(params.device)),
        settings=params.training(dataset, "fine_tune"),
        seed=seeds.derive(params.seed, "fine_tune", dataset),
    )
    method = f"pppfl/{generator}"
    summary = {**found.summary, **privacy, "health": state}
    cost = {**cost, "seconds_at_home": found.seconds}
    with new_folder(paths.personal(dataset, generator)) as out:
        results.save_method(
            out, method, summary, found.curve, found.personal, correct=found.correct, cost=cost
        )
        add_salt_file(out, dataset, "all-clients")
    print(f"{dataset} {method}: {results.line(summary)}")


if __name__ == "__main__":
    main(run, "dataset", "generator")
