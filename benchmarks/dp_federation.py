"""Measures the DP-SGD family in its papers' settings, beside what was published.

    python -m benchmarks.dp_federation --images ../shared/datasets     # hours; measures missing cells
    python -m benchmarks.dp_federation --datasets mnist --seeds 0 --cases fedfdp agn

There are ten clients (`dp_cases`). Delta is 1e-5, the noise comes from the operating system, and
all runs in one process with one thread. The last round's model is tested once on the whole real
test set. For `fedfdp` the models after the steps that smaller epsilons buy are tested as well. One
in thirty training images is held back from the clients, for the rules that look at public images.

A run's CPU-seconds stand beside it. Each cell is written when it is done. Cells that are stored
under the same settings are not measured again.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from benchmarks import common
from benchmarks.common import cells, cpu_seconds, keep, kept, show
from benchmarks.dp_cases import CASES, Case
from pipelines import config, seeds
from pipelines.config.data import Partition
from pipelines.config.values import Block
from pipelines.datasets import partitions
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.federation.algorithms import base
from pipelines.federation.core.messages import Payload
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.dp.public import Public
from pipelines.federation.inprocess import in_process
from pipelines.files import standard
from pipelines.privacy import accounting
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import dp_moments, warm_start
from pipelines.synthesis.release import public_space
from pipelines.training import classifier
from pipelines.training.tensors import State, state_of, with_state

NAME = "dp_federation"
CLIENTS = [f"k{number}" for number in range(10)]
# Fraction of the training images that the server has as public ones.
PUBLIC = 1 / 30
DELTA = 1e-5
HIDDEN = ("settings", "runs")


def settings_of(params: config.Params, dataset: str, case: Case) -> Block:
    """Returns the settings of a case's algorithm.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set.
        case: The case.
    """
    block = getattr(params.dp_baselines, case.algorithm)
    changes = {**case.settings, **case.by_dataset.get(dataset, {})}
    return type(block).model_validate({**block.model_dump(), **changes})


def conditions(params: config.Params, dataset: str, case: Case) -> dict:
    """Returns all that a run depends on beside its seed and the data set's own images.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set.
        case: The case.
    """
    settings = settings_of(params, dataset, case)
    content = {
        **settings.model_dump(),
        "version": base.load(case.algorithm).VERSION,
        "budget": [case.epsilon, DELTA],
        "public": PUBLIC,
    }
    if settings.warm_start:
        augmentation = params.profiles[dataset].augmentation
        content["images"] = params.generator(dataset, "dp_moments").model_dump()
        content["of_version"] = dp_moments.VERSION
        content["augmentation"] = augmentation and augmentation.model_dump()
    return standard({**content, "partition": _partition(params, case).model_dump()})


def dealt(
    params: config.Params, case: Case, seed: int, train: Images
) -> tuple[Images, dict[str, Images]]:
    """Returns the public images, and each client's records.

    Args:
        params: The parameters of params.yaml.
        case: The case, for its partition.
        seed: Seed of the run.
        train: The training images.
    """
    rng = np.random.default_rng(seeds.derive(seed, NAME))
    public, rest = common.split(train, PUBLIC, rng)
    parts = partitions.deal(rest.labels, _partition(params, case), rng)
    return public, {client: rest[rows] for client, rows in parts.items()}


def measure(
    params: config.Params, dataset: str, case: Case, seed: int, train: Images, test: Images
) -> list[dict]:
    """Makes one run.

    Args:
        params: The parameters of params.yaml.
        dataset: Name of the data set.
        case: The case.
        seed: Seed of the run.
        train: The training images.
        test: The test images.

    Returns:
        One dict for each epsilon at which the run is read: "seed", "read_at", "accuracy", "rounds",
        what the account says it spent, and "cpu_seconds".
    """
    start = cpu_seconds()
    settings = settings_of(params, dataset, case)
    public, data = dealt(params, case, seed, train)
    profile = params.profiles[dataset].model_copy(update={"classifier": settings.network})
    model = classifier.new(profile, seeds.derive(seed, "init"), activation=settings.activation)
    accounts, weights = _begun(params, dataset, case, settings, data, model, seed)
    algorithm = base.load(case.algorithm)
    task = NoisyTask(
        build=lambda: _copy(profile, settings),
        data=data,
        accounts=accounts,
        sources=dict.fromkeys(data, OsEntropy()),
        public=Public(_copy(profile, settings), public),
        weights=weights,
    )
    engine = in_process(algorithm, task, settings)
    state = algorithm.server(task, settings)
    account = accounts[CLIENTS[0]]
    reads = _reads(case, settings, dataset)
    readings = []
    last_round = 0
    for number in tqdm(range(1, settings.rounds + 1), desc=NAME, disable=None, mininterval=1):
        replies = engine.call(Payload(state.broadcast, {"round": number, **state.instructions}))
        if not replies:
            break
        state = algorithm.server_step(state, replies)
        last_round = number
        if account.steps in reads:
            epsilon = reads[account.steps]
            readings.append(_read(epsilon, model, state.weights, account, last_round, test))
    if not readings or readings[-1]["steps"] < account.steps:
        readings.append(_read(case.epsilon, model, state.weights, account, last_round, test))
    seconds = cpu_seconds() - start
    return [{"seed": seed, **reading, "cpu_seconds": seconds} for reading in readings]


def row(dataset: str, name: str, epsilon: float, settings: dict, runs: list[dict]) -> dict:
    """Returns the table's line for a cell, with means over its runs.

    Args:
        dataset: Name of the data set.
        name: Name of the case.
        epsilon: The epsilon at which the runs were read.
        settings: The runs' `conditions`.
        runs: One dict per seed, as `measure` returns them.
    """
    case = CASES[name]
    means = {}
    for field in runs[0]:
        if field != "seed":
            means[field] = float(np.mean([run[field] for run in runs]))
    accuracy = means.pop("accuracy")
    return {
        "dataset": dataset,
        "case": name,
        "epsilon": epsilon,
        "accuracy": accuracy,
        "spread": float(np.std([run["accuracy"] for run in runs])),
        "seeds": len(runs),
        "published": _at(case.published.get(dataset), epsilon, case),
        "gate": _at(case.gate.get(dataset), epsilon, case),
        **means,
        "settings": settings,
        "runs": runs,
    }


def main() -> None:
    """Measures the cells that are not stored yet, and prints all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--images", type=Path, default=Path("../shared/datasets"), help="MNIST/raw/*.gz lies in it"
    )
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--datasets", nargs="+", default=["mnist", "fashion_mnist"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    params = config.load()
    for seed, dataset, train, test in cells(
        params, arguments.datasets, arguments.seeds, arguments.images
    ):
        for name in arguments.cases:
            _add(params, dataset, name, seed, train, test)
    show(kept(NAME), hidden=HIDDEN)


def _partition(params: config.Params, case: Case) -> Partition:
    """Returns the settings by which the records are dealt."""
    settings = {**params.partition.model_dump(), **case.partition}
    return Partition.model_validate({**settings, "clients": CLIENTS, "small": None})


def _begun(
    params: config.Params,
    dataset: str,
    case: Case,
    settings: Block,
    data: dict[str, Images],
    model: nn.Module,
    seed: int,
) -> tuple[dict[str, Any], State]:
    """Returns each client's account, and the weights before the first round."""
    new_account = base.load(case.algorithm).new_account
    accounts = {}
    start = settings.warm_start
    if not start:
        for client in data:
            accounts[client] = new_account(case.epsilon, DELTA, settings)
        return accounts, state_of(model)
    generator = params.generator(dataset, "dp_moments")
    space = public_space(params.profiles[dataset])
    plan = warm_start.plan(generator, case.epsilon, DELTA, start.share, space)
    plans = dict.fromkeys(data, plan)
    sources = {client: OsEntropy() for client in data}
    augmentation = params.profiles[dataset].augmentation
    start_seed = seeds.derive(seed, "warm_start")
    weights, _ = warm_start.trained(model, start, augmentation, data, plans, sources, start_seed)
    delta_left = warm_start.continuous(DELTA)
    steps = warm_start.steps(plan)
    for client in data:
        accounts[client] = new_account(case.epsilon, delta_left, settings, steps)
    return accounts, weights


def _copy(profile: Any, settings: Block) -> nn.Module:
    """Returns a network of the run's kind, whose weights do not matter."""
    return classifier.new(profile, 0, activation=settings.activation)


def _reads(case: Case, settings: Block, dataset: str) -> dict[int, float]:
    """Returns {steps taken: the epsilon that they cost}, if a table has several for one run."""
    table = case.published.get(dataset)
    if not isinstance(table, dict):
        return {}
    noise = {"sampling_rate": settings.sampling_rate, "noise_multiplier": settings.noise_multiplier}
    reads = {}
    for epsilon in table:
        reads[accounting.steps_for(epsilon=epsilon, delta=DELTA, **noise)] = epsilon
    return reads


def _read(
    epsilon: float, model: nn.Module, weights: State, account: Any, rounds: int, test: Images
) -> dict:
    """Tests the weights and returns one reading of a run."""
    accuracy = scores(with_state(model, weights), test)["accuracy"]
    return {"read_at": epsilon, "accuracy": accuracy, "rounds": rounds, **account.spent()}


def _at(table: dict | float | None, epsilon: float, case: Case) -> float | None:
    """Returns a published figure or gate at an epsilon; None if there is none."""
    if isinstance(table, dict):
        return table.get(epsilon)
    return table if epsilon == case.epsilon else None


def _add(
    params: config.Params, dataset: str, name: str, seed: int, train: Images, test: Images
) -> None:
    """Measures a cell and stores it, unless it is stored. It replaces runs under other settings."""
    settings = conditions(params, dataset, CASES[name])
    cell = {"dataset": dataset, "case": name, "settings": settings}
    if any(run["seed"] == seed for run in _runs(cell)):
        return
    for run in measure(params, dataset, CASES[name], seed, train, test):
        epsilon = run.pop("read_at")
        print(
            f"{dataset} {name!r}, epsilon {epsilon:g}, seed {seed}: {run['accuracy']:.4f} "
            f"after {run['steps']} steps in {run['cpu_seconds']:.0f} CPU-seconds",
            flush=True,
        )
        runs = [*_runs({**cell, "epsilon": epsilon}), run]
        runs.sort(key=lambda run: run["seed"])
        key = {"dataset": dataset, "case": name, "epsilon": epsilon}
        rows = [*common.without(kept(NAME), key), row(dataset, name, epsilon, settings, runs)]
        keep(NAME, sorted(rows, key=_place))


def _runs(key: dict) -> Iterator[dict]:
    """Yields the stored runs of the rows that have the key."""
    for line in kept(NAME):
        if common.has(line, key):
            yield from line["runs"]


def _place(line: dict) -> tuple[str, int, float]:
    """Returns the place of a row in the table."""
    return line["dataset"], list(CASES).index(line["case"]), line["epsilon"]


if __name__ == "__main__":
    main()
