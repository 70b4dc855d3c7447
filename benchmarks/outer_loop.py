"""Which outer loop of PPPFL earns its rounds, judged on synthetic images alone: the search behind `meta`.

    python -m benchmarks.outer_loop --datasets digits
    python -m benchmarks.outer_loop --datasets mnist fashion_mnist --images ../shared/datasets      # half an hour each

Every client of the partition releases a `dp_moments` set within its own budget; a fifth of each set is kept from
meta-training. A model's score is what it becomes on that fifth: adapted to LABELS of its images, a client at a time,
by STEPS of Adam, tested on the rest of it; the mean over clients. No record is read but to make the releases, so
whoever holds the sets may choose by this. What is kept under the same settings is not measured again.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common import keep, kept, show
from pipelines import config, seeds
from pipelines.config.training import Meta
from pipelines.datasets import partitions, sources
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.federation.core.task import Task, federate
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, release
from pipelines.training import classifier
from pipelines.training.tensors import State, with_state

NAME, GENERATOR = "outer_loop", "dp_moments"
KEPT, LABELS, STEPS, DRAWS = 0.2, 8, 30, 5
PAPER = {"inner_learning_rate": 1e-4, "inner_steps": 1, "outer_learning_rate": 3e-4, "batch": 64}
BOTH, NEITHER = {"ema": True, "cosine": True}, {"ema": False, "cosine": False}
RATES = (1e-3, 3e-3, 1e-2, 3e-2)
CANDIDATES = {
    "paper": {**PAPER, **BOTH},
    **{f"EMA and cosine, outer {rate:g}": {**BOTH, "outer_learning_rate": rate} for rate in RATES},
    **{f"neither, outer {rate:g}": {**NEITHER, "outer_learning_rate": rate} for rate in RATES},
    "EMA": {**NEITHER, "ema": True},
    "cosine": {**NEITHER, "cosine": True},
    **{
        f"neither, inner {rate:g}": {**NEITHER, "inner_learning_rate": rate}
        for rate in (0.01, 0.03, 0.3)
    },
    **{f"neither, inner steps {steps}": {**NEITHER, "inner_steps": steps} for steps in (1, 5)},
    "neither, first order": {**NEITHER, "order": "first"},
    "neither, 300 rounds": {**NEITHER, "rounds": 300},
    "neither, 300 rounds, first order": {**NEITHER, "rounds": 300, "order": "first"},
}  # where no outer rate is named, the profile's
READ = {
    "fresh": 0,
    "a third": 1 / 3,
    "two thirds": 2 / 3,
    "all rounds": 1,
}  # {column: share of the rounds}


def synthetic_sets(params: config.Params, dataset: str, root: Path) -> dict[str, Images]:
    """{client: its released set}."""
    profile = params.profiles[dataset]
    pool, test = sources.read(
        dataset, name=profile.source, classes=profile.classes, shape=profile.shape, root=root
    )
    rng = np.random.default_rng(seeds.derive(params.seed, NAME))
    if test is None:
        _, pool = (
            pool[rows]
            for rows in partitions.split(pool.labels, [params.prepare.test_fraction], rng)
        )
    module, made = base.load(GENERATOR), {}
    for client, shard in partitions.cut(pool, params.partition, rng).items():
        budget, space = Budget(*params.budget(client)), release.public_space(profile)
        plan = module.plan(params.generator(dataset, GENERATOR), budget, space)
        state = module.fit(
            shard.train, plan, OsEntropy(), seeds.derive(params.seed, GENERATOR, client)
        )
        made[client] = module.sample(
            state, profile.images, seeds.derive(params.seed, "sample", client)
        )
    return made


def adapted(model: State, sets: dict[str, Images], build) -> float:
    """Mean over clients and draws: accuracy on a set's rest after STEPS of Adam on LABELS of its images."""
    found = []
    for client, data in sorted(sets.items()):
        for draw in range(DRAWS):
            rows = np.random.default_rng(seeds.derive(draw, client)).permutation(len(data))
            network = with_state(build(), model)
            few, rest = data[rows[:LABELS]], data[rows[LABELS:]]
            classifier.fit(network, few, epochs=STEPS, batch=LABELS, learning_rate=1e-3, seed=draw)
            found.append(scores(network, rest)["accuracy"])
    return float(np.mean(found))


def measure(params: config.Params, dataset: str, sets: dict[str, Images], settings: Meta) -> dict:
    """{column of READ: score}."""
    profile = params.profiles[dataset]
    build = partial(classifier.new, profile, seeds.derive(params.seed, "init", dataset))
    cut = {client: round(len(data) * KEPT) for client, data in sets.items()}
    trained = {client: data[cut[client] :] for client, data in sets.items()}
    held_out = {client: data[: cut[client]] for client, data in sets.items()}
    epsilons = {client: params.clients[client].epsilon for client in sets}
    task = Task(
        trained, build, profile.augmentation, epsilons, seeds.derive(params.seed, NAME, dataset)
    )
    models = federate("pppfl", task, settings).models
    read = {column: models[round(settings.rounds * share)] for column, share in READ.items()}
    return {
        "rounds": settings.rounds,
        **{column: adapted(model, held_out, build) for column, model in read.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, help="where the raw files lie; else `prepare.root`")
    parser.add_argument("--datasets", nargs="+", default=["digits"])
    parser.add_argument("--candidates", nargs="+", choices=CANDIDATES, default=list(CANDIDATES))
    arguments = parser.parse_args()
    params = config.load()
    for dataset in arguments.datasets:
        sets = synthetic_sets(params, dataset, arguments.images or Path(params.prepare.root))
        for candidate in arguments.candidates:
            settings = params.training(dataset, "meta").model_copy(update=CANDIDATES[candidate])
            _add({"dataset": dataset, "candidate": candidate}, params, sets, settings)
    show(kept(NAME), hidden=("settings",))


def _add(key: dict, params: config.Params, sets: dict[str, Images], settings: Meta) -> None:
    """Measures what is not kept under these settings, and keeps it."""
    used = {
        **settings.model_dump(),
        "images": len(next(iter(sets.values()))),
        "labels": LABELS,
        "steps": STEPS,
    }
    if any(key.items() <= row.items() and row["settings"] == used for row in kept(NAME)):
        return
    row = {**key, **measure(params, key["dataset"], sets, settings), "settings": used}
    print(*(value for name, value in row.items() if name != "settings"), flush=True)
    others = [line for line in kept(NAME) if not key.items() <= line.items()]
    rows = sorted(
        [*others, row],
        key=lambda line: (line["dataset"], list(CANDIDATES).index(line["candidate"])),
    )
    keep(NAME, rows, judged_on="synthetic images alone")


if __name__ == "__main__":
    main()
