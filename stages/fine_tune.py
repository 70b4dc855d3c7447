"""fine_tune@DATASET-GENERATOR: each client adapts PPPFL's initial model on its private records. Private."""

from functools import partial

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import containers, shards
from pipelines.datasets.secrets import season
from pipelines.federation import health, outcome, personalise
from pipelines.files import new_folder, read_json
from pipelines.training import classify
from pipelines.training.tensors import device
from stages.cli import main


def run(params: Params, dataset: str, generator: str) -> None:
    folder = paths.initial(dataset, generator)
    found = personalise.through_rounds(
        outcome.load_models(folder / "rounds.safetensors"),
        shards.read_all(dataset, list(params.clients)),
        containers.load(paths.prepared(dataset) / "test.npz"),
        build=partial(classify.new, params.profiles[dataset], 0, device(params.device)),
        settings=params.training(dataset, "fine_tune"),
        seed=seeds.derive(params.seed, "fine_tune", dataset),
    )
    method = f"pppfl/{generator}"
    summary = {**found.summary, **read_json(folder / "privacy.json"), "health": read_json(folder / health.FILE)}
    cost = {**read_json(paths.cost(dataset, generator) / paths.COST), "seconds_at_home": found.seconds}
    with new_folder(paths.personal(dataset, generator)) as out:
        outcome.save_method(out, method, summary, found.curve, found.personal, correct=found.correct, cost=cost)
        season(out, dataset, "all-clients")
    print(f"{dataset} {method}: {outcome.line(summary)}")


if __name__ == "__main__":
    main(run, "dataset", "generator")
