"""train_baseline@DATASET-ALGORITHM: trains the same clients without PPPFL. Its output is private.

Most train on the clients' synthetic sets, once per generator, then all are fine-tuned locally and
alike. `local` and `random_init` send nothing; fedavg_real and pppfl_real train on the private
records, with no privacy: upper bounds.
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
from pipelines.errors import UserError
from pipelines.federation import baselines, health
from pipelines.federation.core.rounds import History
from pipelines.federation.core.task import Task, of_clients
from pipelines.federation.engine import on_synthetic
from pipelines.federation.home import alone, fine_tuning, results
from pipelines.federation.run_spec import RunSpec
from pipelines.files import new_folder
from pipelines.training.pool import released_pool
from pipelines.training.tensors import device
from stages.cli import main

NOTHING_LEAVES = {"epsilon_max": 0.0, "guarantee": "nothing leaves a client"}
UPPER_BOUND = {"epsilon_max": math.inf, "guarantee": "none", "upper_bound": True}


def run(params: Params, dataset: str, algorithm: str) -> None:
    """Trains a method on every generator's sets, fine-tunes it at each client, writes the results.

    Args:
        params: The parameters.
        dataset: The data set's name.
        algorithm: The method's name.

    Raises:
        UserError: The method exchanges messages, and the clients are on other machines.
    """
    _refuse_other_machines(params, dataset, algorithm)
    profile = params.profiles[dataset]
    client_shards = shards.read_all(dataset, list(params.clients), profile)
    global_test = labelled_images.load(paths.prepared(dataset) / "test.npz", profile)
    unfinished = scratch.unfinished(f"train_baseline-{dataset}-{algorithm}")
    with unfinished as checkpoints, new_folder(paths.baseline(dataset, algorithm)) as folder:
        for generator, data, privacy in _data(params, dataset, algorithm, client_shards):
            task = of_clients(params, dataset, data, algorithm, generator)
            settings = params.training(dataset, algorithm)
            released = data if generator else {}
            per_class = params.training(dataset, "meta").pool_per_class
            on = device(params.device)
            pool = released_pool(released, profile.augmentation, on, per_class)
            network = _network(params, dataset, algorithm, generator)
            fine_tune = _fine_tuning(params, dataset, algorithm)
            models_alone, seconds_alone = alone.at_hand(params, dataset, task.build)
            reported = baselines.trained(algorithm, task, settings, network, checkpoints)
            for name, trained in reported.items():
                tuned = fine_tuning.from_each_own(
                    trained.models,
                    client_shards,
                    global_test,
                    build=task.build,
                    settings=fine_tune,
                    seed=seeds.derive(params.seed, "fine_tune", dataset),
                    pool=pool,
                    alone=models_alone,
                )
                seconds = tuned.seconds
                if fine_tune.recipe == "alone" and models_alone:
                    seconds = seconds_alone
                verdict = _health(dataset, algorithm, task, settings, trained)
                method = f"{name}/{generator}" if generator else name
                results.save_method(
                    folder,
                    method,
                    {**tuned.summary, **privacy, "health": verdict.as_dict()},
                    tuned.curve,
                    tuned.personal,
                    correct=tuned.correct,
                    cost={**trained.cost, "seconds_at_home": seconds},
                )
                print(f"{dataset} {method}: {results.line(tuned.summary)}")
                print(verdict.told(f"{dataset} {method}"), end="")
        add_salt_file(folder, dataset, "all-clients")


def _refuse_other_machines(params: Params, dataset: str, algorithm: str) -> None:
    """Raises UserError for a run between machines, of which none has every client's shard."""
    if params.federation.is_remote and methods.exchanges_messages(algorithm):
        arguments = f"--dataset {dataset} --generator {params.synthesis.generators[0]}"
        raise UserError(
            "federation.mode is 'remote', and train_baseline fine-tunes with the records of all "
            "clients, which no machine has then: run `python -m stages.meta_train "
            f"{arguments} --method {algorithm}`, and at each client `python -m stages.fine_tune` "
            "with the same arguments."
        )


def _data(
    params: Params, dataset: str, algorithm: str, client_shards: dict[str, Shard]
) -> Iterator[tuple]:
    """Yields the generator or None, each client's set, and its privacy, for each run."""
    if algorithm in (*methods.AT_HOME, *methods.ON_REAL_DATA):
        privacy = UPPER_BOUND if algorithm in methods.ON_REAL_DATA else NOTHING_LEAVES
        yield None, {client: shard.train for client, shard in client_shards.items()}, privacy
        return
    for generator in params.synthesis.generators:
        clients = list(params.clients)
        sets = exports.images(dataset, clients, generator, params.profiles[dataset])
        yield generator, sets, exports.privacy(dataset, clients, generator)


def _health(
    dataset: str, algorithm: str, task: Task, settings: Block, trained: baselines.Trained
) -> health.Health:
    """Returns the verdict on the one model that all share, by their synthetic sets.

    For an upper bound, and for models of each client's own, it looks at weights alone: no verdict
    may come from private records.
    """
    models = list({id(model): model for model in trained.models[-1].values()}.values())
    shared = len(models) == 1 and algorithm not in (*methods.AT_HOME, *methods.ON_REAL_DATA)
    verdicts = []
    for model in models:
        verdict = health.check(
            model,
            task.start(),
            sets=list(task.data.values()) if shared else [],
            build=task.build,
            seed=seeds.derive(task.seed, "health"),
            remedy=health.remedy(dataset, f"baselines.{algorithm}", settings),
        )
        if verdict.collapsed:
            return verdict
        verdicts.append(verdict)
    return verdicts[0]


def _network(
    params: Params, dataset: str, algorithm: str, generator: str | None
) -> Callable[[], History] | None:
    """Returns what runs the rounds over a network, or None where they run in this process.

    The upper bounds always do.
    """
    if params.federation.engine == "inprocess" or not methods.exchanges_messages(algorithm):
        return None
    return partial(on_synthetic, params, RunSpec(dataset, algorithm, generator))


def _fine_tuning(params: Params, dataset: str, algorithm: str) -> FineTune:
    """Returns the settings of fine-tuning, alike for all methods that share something.

    A client that trains alone has no released images, and no weights to stay near. `local` trains by
    the same schedule on its records alone, or plainly until it stops improving.
    """
    settings = params.training(dataset, "fine_tune")
    if algorithm not in methods.AT_HOME:
        return settings
    if algorithm == "local" and settings.recipe == "replay":
        return settings.model_copy(update={"recipe": "alone"})
    longer = params.training(dataset, "local").model_dump() if algorithm == "local" else {}
    return settings.model_copy(update={"recipe": "plain", **longer})


if __name__ == "__main__":
    main(run, "dataset", "algorithm", block="baselines")
