"""train_dp_baseline@DATASET-ALGORITHM: the clients' budgets spent on noisy gradients or weights. Private."""

import shutil
from functools import partial

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import labelled_images, shards
from pipelines.datasets.salting import add_salt_file
from pipelines.federation import noisy_training
from pipelines.federation.engine import networked
from pipelines.federation.home import alone, fine_tuning, results
from pipelines.federation.noisy_run import NoisyRun
from pipelines.federation.run_spec import RunSpec
from pipelines.files import new_folder
from pipelines.privacy.statement import combined
from pipelines.synthesis import warm_start
from stages.cli import main


def run(params: Params, dataset: str, algorithm: str) -> None:
    """Trains with noise, fine-tunes the shared model at each client, and writes the results."""
    name = f"{dataset} {algorithm}"
    why = params.left_out(dataset, algorithm)
    if why:
        with new_folder(paths.dp_baseline(dataset, algorithm)) as folder:
            results.leave_out(folder, algorithm, why)
            add_salt_file(folder, dataset, "all-clients")
        print(why)
        return
    profile = params.profiles[dataset]
    client_shards = shards.read_all(dataset, list(params.clients), profile)
    noisy = NoisyRun(params, dataset, algorithm, warm_start.joint_start(params, dataset, algorithm))
    network = None
    if params.federation.engine != "inprocess":
        network = partial(networked, params, RunSpec(dataset, algorithm))
    # what training alone came to must be at hand before anything is spent
    trained_alone = alone.at_hand(params, dataset, noisy.build, noisy.network)[0]
    records = {client: shard.train for client, shard in client_shards.items()}
    store, statements = noisy.release(records, network)
    model, cost = noisy_training.read(store)
    tuned = fine_tuning.through_rounds(
        [model],
        client_shards,
        labelled_images.load(paths.prepared(dataset) / "test.npz", profile),
        build=noisy.build,
        settings=params.training(dataset, "fine_tune", noisy.network),
        seed=seeds.derive(params.seed, "fine_tune", dataset),
        alone=trained_alone,
        first=cost["rounds"],
    )
    cost["seconds_at_home"] = tuned.seconds
    verdict = noisy.health(model)
    privacy = {**combined(list(statements.values())), "statements": statements}
    summary = {**tuned.summary, **privacy, "health": verdict.as_dict()}
    with new_folder(paths.dp_baseline(dataset, algorithm)) as folder:
        results.save_method(
            folder,
            algorithm,
            summary,
            tuned.curve,
            tuned.personal,
            correct=tuned.correct,
            cost=cost,
        )
        for file in (noisy_training.LOG, noisy_training.SPENT):
            shutil.copy(store / file, folder / algorithm / file)
        add_salt_file(folder, dataset, "all-clients")
    print(f"{name}: {results.line(summary)}")
    print(verdict.told(name), end="")


if __name__ == "__main__":
    main(run, "dataset", "algorithm", block="dp_baselines")
