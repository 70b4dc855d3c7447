"""train_baseline@DATASET-ALGORITHM: the same clients without PPPFL. Private.

Most train on the clients' synthetic sets, once per generator, then all are fine-tuned at home alike. `local` and
`random_init` send nothing; fedavg_real and pppfl_real train on the private records, with no privacy: upper bounds.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

from pipelines import methods, paths, scratch, seeds
from pipelines.config import Params
from pipelines.config.training import FineTune
from pipelines.config.values import Block
from pipelines.datasets import exports, labelled_images, shards
from pipelines.datasets.salting import add_salt_file
from pipelines.datasets.shards import Shard
from pipelines.federation import baselines, health
from pipelines.federation.core.rounds import History
from pipelines.federation.core.task import Task, of_clients
from pipelines.federation.engine import on_synthetic
from pipelines.federation.home import fine_tuning, results
from pipelines.federation.run_spec import RunSpec
from pipelines.files import new_folder
from stages.cli import main

NOTHING_LEAVES = {"epsilon_max": 0.0, "guarantee": "nothing leaves a client"}
UPPER_BOUND = {"epsilon_max": math.inf, "guarantee": "none", "upper_bound": True}


def run(params: Params, dataset: str, algorithm: str) -> None:
    """Trains a method on every generator's sets, fine-tunes it at each client, and writes the results."""
    profile = params.profiles[dataset]
    client_shards = shards.read_all(dataset, list(params.clients), profile)
    everyone = labelled_images.load(paths.prepared(dataset) / "test.npz", profile)
    unfinished = scratch.unfinished(f"train_baseline-{dataset}-{algorithm}")
    with unfinished as kept, new_folder(paths.baseline(dataset, algorithm)) as folder:
        for generator, data, privacy in _data(params, dataset, algorithm, client_shards):
            task = of_clients(params, dataset, data, algorithm, generator)
            settings = params.training(dataset, algorithm)
            network = _network(params, dataset, algorithm, generator)
            reported = baselines.trained(algorithm, task, settings, network, kept)
            for name, trained in reported.items():
                tuned = fine_tuning.from_each_own(
                    trained.models,
                    client_shards,
                    everyone,
                    build=task.build,
                    settings=_fine_tuning(params, dataset, algorithm),
                    seed=seeds.derive(params.seed, "fine_tune", dataset),
                )
                verdict = _health(dataset, algorithm, task, settings, trained)
                method = f"{name}/{generator}" if generator else name
                results.save_method(
                    folder,
                    method,
                    {**tuned.summary, **privacy, "health": verdict.as_dict()},
                    tuned.curve,
                    tuned.personal,
                    correct=tuned.correct,
                    cost={**trained.cost, "seconds_at_home": tuned.seconds},
                )
                print(f"{dataset} {method}: {results.line(tuned.summary)}")
                print(verdict.told(f"{dataset} {method}"), end="")
        add_salt_file(folder, dataset, "all-clients")


def _data(
    params: Params, dataset: str, algorithm: str, client_shards: dict[str, Shard]
) -> Iterator[tuple]:
    """Yields the generator or None, each client's set, and its privacy, for each run of the algorithm."""
    if algorithm in (*methods.AT_HOME, *methods.ON_REAL_DATA):
        privacy = UPPER_BOUND if algorithm in methods.ON_REAL_DATA else NOTHING_LEAVES
        yield None, {client: shard.train for client, shard in client_shards.items()}, privacy
        return
    for generator in params.synthesis.generators:
        of = dataset, list(params.clients), generator
        yield generator, exports.images(*of, params.profiles[dataset]), exports.privacy(*of)


def _health(
    dataset: str, algorithm: str, task: Task, settings: Block, trained: baselines.Trained
) -> health.Health:
    """Returns the verdict on the one model that all share, by their synthetic sets.

    For an upper bound, and for models of each client's own, it looks at weights alone: no verdict may come from private
    records.
    """
    models = list({id(model): model for model in trained.models[-1].values()}.values())
    shared = len(models) == 1 and algorithm not in (*methods.AT_HOME, *methods.ON_REAL_DATA)
    asked = {
        "sets": list(task.data.values()) if shared else [],
        "build": task.build,
        "seed": seeds.derive(task.seed, "health"),
        "remedy": health.remedy(dataset, f"baselines.{algorithm}", settings),
    }
    verdicts = [health.check(model, task.start(), **asked) for model in models]
    return next((verdict for verdict in verdicts if verdict.collapsed), verdicts[0])


def _network(
    params: Params, dataset: str, algorithm: str, generator: str | None
) -> Callable[[], History] | None:
    """Returns what runs the rounds over a network, or None where they run in this process.

    The upper bounds always do.
    """
    if params.federation.engine == "inprocess" or not methods.has_rounds(algorithm):
        return None
    return partial(on_synthetic, params, RunSpec(dataset, algorithm, generator))


def _fine_tuning(params: Params, dataset: str, algorithm: str) -> FineTune:
    """Returns the settings of fine-tuning: alike for all but `local`, which trains until it stops improving."""
    longer = params.training(dataset, "local").model_dump() if algorithm == "local" else {}
    return params.training(dataset, "fine_tune").model_copy(update=longer)


if __name__ == "__main__":
    main(run, "dataset", "algorithm", block="baselines")
