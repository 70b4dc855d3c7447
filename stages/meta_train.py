"""meta_train@DATASET-GENERATOR: trains an initial model for all on the clients' synthetic sets alone.

The model is PPPFL's, or another method's by `--method`, which DVC does not run. What it cost is stored
apart and stays local: a clock says something else each time.
"""

from pathlib import Path

from pipelines import methods, paths, scratch, seeds
from pipelines.config import Params
from pipelines.config.training import Meta
from pipelines.config.values import Block
from pipelines.datasets import exports
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.salting import add_salt_file
from pipelines.federation import health
from pipelines.federation.algorithms import pppfl
from pipelines.federation.core.rounds import History
from pipelines.federation.engine import gathers_sets, with_sets
from pipelines.federation.home import results
from pipelines.federation.run_spec import RunSpec
from pipelines.files import new_folder, write_csv, write_json
from pipelines.training.pool import released_images
from stages.cli import main

LOSSES = ("query_loss", "train_loss")


def run(params: Params, dataset: str, generator: str, method: str = "pppfl") -> None:
    """Runs the rounds and writes the models, their curves, privacy and health.

    Args:
        params: The parameters.
        dataset: The data set's name.
        generator: The generator's name.
        method: The method's name.
    """
    planned = RunSpec(dataset, method, generator)
    cards = None
    if not gathers_sets(params, planned):
        # before the rounds, so that a missing card is reported at once
        cards = exports.cards(dataset, list(params.clients), generator)
    name = paths.of_method(generator, method)
    with scratch.unfinished(f"meta_train-{dataset}-{name}") as unfinished:
        history, _, handed_in = with_sets(params, planned, unfinished)
        cards = cards or {client: export.card for client, export in handed_in.items()}
        curves = _curves(history, planned.settings(params))
        sets = {client: export.images for client, export in handed_in.items()}
        verdict = _health(params, planned, history)
        with new_folder(paths.initial(dataset, name)) as folder:
            results.save_models(folder / "rounds.safetensors", history.models)
            write_csv(folder / "rounds.csv", curves)
            write_json(
                folder / "privacy.json",
                exports.privacy_of(cards, params.profiles[dataset].classifier),
            )
            write_json(folder / "cards.json", cards)
            _write_pool(folder, params, dataset, sets)
            write_json(folder / health.FILE, verdict.as_dict())
        with new_folder(paths.cost(dataset, name)) as folder:
            write_json(folder / paths.COST, history.cost)
            add_salt_file(folder, dataset, "all-clients")
    print(_line(planned, curves[-1]))
    print(verdict.told(f"{dataset} {method}/{generator}"), end="")


def _curves(history: History, settings: Block) -> list[dict]:
    """Returns a row per round. A method without rounds has a row for its one model, round 0."""
    curves = []
    for row in history.curves:
        if isinstance(settings, Meta):
            rate = pppfl.outer_learning_rate(settings, row["round"])
            row = {**row, "outer_learning_rate": rate}
        curves.append(row)
    return curves or [{"round": 0}]


def _line(run: RunSpec, last: dict) -> str:
    """Returns a line for the terminal about the last round."""
    if run.method == "pppfl":
        figures = f"query loss {last['query_loss']:.3f}, accuracy {last['query_accuracy']:.3f}"
        return f"{run.dataset}/{run.generator}: {figures}"
    figures = [f"round {last['round']}"]
    for loss in LOSSES:
        if loss in last:
            figures.append(f"{loss.replace('_', ' ')} {last[loss]:.3f}")
    return f"{run.dataset} {run.method}/{run.generator}: {', '.join(figures)}"


def _write_pool(folder: Path, params: Params, dataset: str, sets: dict[str, Images]) -> None:
    """Writes the released images that are handed out with the model, where the server has them."""
    pool = released_images(sets, params.training(dataset, "meta").pool_per_class)
    if pool is not None:
        pool.save(folder / paths.POOL)


def _health(params: Params, run: RunSpec, history: History) -> health.Health:
    """Returns the verdict on the last model, by the exported sets, beside an untrained network.

    Where a server has no sets, it is by the model's weights alone.
    """
    sets = exports.at_hand(run.dataset, list(params.clients), run.generator)
    task = run.task(params, sets)
    block = "meta" if run.method == "pppfl" else f"baselines.{run.method}"
    losses = []
    for row in history.curves[-1:]:
        losses += [row[loss] for loss in LOSSES if loss in row]
    return health.check(
        history.models[-1],
        task.start(),
        sets.values(),
        build=task.build,
        seed=seeds.derive(task.seed, "health"),
        remedy=health.remedy(run.dataset, block, run.settings(params)),
        losses=losses,
    )


if __name__ == "__main__":
    main(run, "dataset", "generator", methods=methods.of_one_model)
