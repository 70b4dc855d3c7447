"""Adapts a model that was handed out to the records of each client. The result is private."""

from pathlib import Path

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import labelled_images, shards
from pipelines.datasets.salting import add_salt_file
from pipelines.federation import health
from pipelines.federation.home import alone, fine_tuning, results
from pipelines.federation.home.recipes import Build
from pipelines.files import new_folder, read_json, require
from pipelines.training.pool import Pool
from pipelines.training.tensors import device


def adapt(
    params: Params, dataset: str, name: str, reported: str, build: Build, network: str
) -> str:
    """Fine-tunes a shared model at every client of the parameters, and writes the results.

    Args:
        params: of the project.
        dataset: its name.
        name: of the model's folders, by `paths.of_method` or `paths.of_noisy_method`.
        reported: the name under which the results are reported.
        build: makes a network of the right shape.
        network: its name.

    Returns:
        A line for the terminal.

    Raises:
        UserError: The model, or what must lie beside it, is absent or damaged.
    """
    folder = paths.initial(dataset, name)
    privacy = _read(folder / "privacy.json", "epsilon_max", "guarantee")
    state = _read(folder / health.FILE, "collapsed", "why")
    cost_file = paths.cost(dataset, name) / paths.COST
    cost = _read(cost_file, "rounds", "bytes_down", "bytes_up", "seconds")
    profile = params.profiles[dataset]
    models = results.load_models(folder / "rounds.safetensors")
    models_alone, _ = alone.at_hand(params, dataset, build, network)
    tuned = fine_tuning.through_rounds(
        models,
        shards.read_all(dataset, list(params.clients), profile),
        labelled_images.load(paths.prepared(dataset) / "test.npz", profile),
        build=build,
        settings=params.training(dataset, "fine_tune", network),
        seed=seeds.derive(params.seed, "fine_tune", dataset),
        pool=_pool(params, dataset, folder),
        alone=models_alone,
        first=0 if len(models) > 1 else cost["rounds"],
    )
    summary = {**tuned.summary, **privacy, "health": state}
    cost = {**cost, "seconds_at_home": tuned.seconds}
    with new_folder(paths.personal(dataset, name)) as out:
        results.save_method(
            out, reported, summary, tuned.curve, tuned.personal, correct=tuned.correct, cost=cost
        )
        add_salt_file(out, dataset, "all-clients")
    return f"{dataset} {reported}: {results.line(summary)}"


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
