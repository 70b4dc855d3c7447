"""fine_tune@DATASET-GENERATOR: each client adapts a shared initial model on its private records.

The model is PPPFL's, or another method's by `--method`. The clients are those of the parameters: one
that lists itself alone needs no other's records. The output is private.
"""

from functools import partial
from pathlib import Path

from pipelines import methods, paths, seeds
from pipelines.config import Params
from pipelines.datasets import labelled_images, shards
from pipelines.datasets.salting import add_salt_file
from pipelines.federation import health
from pipelines.federation.home import alone, fine_tuning, results
from pipelines.files import new_folder, read_json, require
from pipelines.training import classifier
from pipelines.training.pool import Pool
from pipelines.training.tensors import device
from stages.cli import main


def run(params: Params, dataset: str, generator: str, method: str = "pppfl") -> None:
    """Fine-tunes at every client and writes the results.

    Args:
        params: The parameters.
        dataset: The data set's name.
        generator: The generator's name.
        method: The method that made the model.
    """
    name = paths.of_method(generator, method)
    folder = paths.initial(dataset, name)
    profile = params.profiles[dataset]
    settings = params.training(dataset, "fine_tune")
    privacy = _read(folder / "privacy.json", "epsilon_max", "guarantee")
    state = _read(folder / health.FILE, "collapsed", "why")
    cost_file = paths.cost(dataset, name) / paths.COST
    cost = _read(cost_file, "rounds", "bytes_down", "bytes_up", "seconds")
    build = partial(classifier.new, profile, 0, device(params.device))
    models_alone, _ = alone.at_hand(params, dataset, build)
    tuned = fine_tuning.through_rounds(
        results.load_models(folder / "rounds.safetensors"),
        shards.read_all(dataset, list(params.clients), profile),
        labelled_images.load(paths.prepared(dataset) / "test.npz", profile),
        build=build,
        settings=settings,
        seed=seeds.derive(params.seed, "fine_tune", dataset),
        pool=_pool(params, dataset, folder),
        alone=models_alone,
    )
    reported = f"{method}/{generator}"
    summary = {**tuned.summary, **privacy, "health": state}
    cost = {**cost, "seconds_at_home": tuned.seconds}
    with new_folder(paths.personal(dataset, name)) as out:
        results.save_method(
            out, reported, summary, tuned.curve, tuned.personal, correct=tuned.correct, cost=cost
        )
        add_salt_file(out, dataset, "all-clients")
    print(f"{dataset} {reported}: {results.line(summary)}")


def _pool(params: Params, dataset: str, folder: Path) -> Pool | None:
    """Returns the released images that came with the model, or None if none did."""
    path = folder / paths.POOL
    if not path.exists():
        return None
    profile = params.profiles[dataset]
    images = labelled_images.load(path, profile)
    return Pool(images, profile.augmentation, device(params.device))


def _read(path: Path, *keys: str) -> dict:
    """Reads a JSON file that must have these keys."""
    content = read_json(path)
    require(path, content, *keys)
    return content


if __name__ == "__main__":
    main(run, "dataset", "generator", methods=methods.of_one_model)
