"""The DP-SGD family in its papers' settings, beside what was published: accuracy on the whole real test set.

    python -m benchmarks.dp_federation --images ../shared/datasets     # hours; measures the cells not kept yet
    python -m benchmarks.dp_federation --datasets mnist --seeds 0 --cases fedfdp agn

Ten clients (`dp_cases`), delta 1e-5, noise from the operating system, one process and one thread. The last round's
model is tested, once; of `fedfdp` also the models after the steps that smaller epsilons buy. One in thirty training
images is kept from the clients for the rules that look at public ones. A run's CPU-seconds stand beside it; each cell
is written when it is done, and what is kept under the same settings is not measured again.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.common import cells, cpu_seconds, keep, kept, show
from benchmarks.dp_cases import CASES, Case
from pipelines import config, seeds
from pipelines.config.data import Partition
from pipelines.config.values import Block
from pipelines.datasets import partitions
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.federation import noisy_run
from pipelines.federation.core.messages import Payload
from pipelines.federation.dp.public import Public
from pipelines.files import standard
from pipelines.privacy import accounting
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import dp_moments, warm_start
from pipelines.synthesis.release import public_space
from pipelines.training import classifier
from pipelines.training.tensors import state_of, with_state

NAME = "dp_federation"
CLIENTS = [f"k{number}" for number in range(10)]
PUBLIC, DELTA = 1 / 30, 1e-5
HIDDEN = ("settings", "runs")


def settings_of(params: config.Params, dataset: str, case: Case) -> Block:
    block = getattr(params.dp_baselines, case.algorithm)
    return type(block).model_validate(
        {**block.model_dump(), **case.settings, **case.own.get(dataset, {})}
    )


def conditions(params: config.Params, dataset: str, case: Case) -> dict:
    """All that a run depends on beside its seed and the data set's own images."""
    settings, profile = settings_of(params, dataset, case), params.profiles[dataset]
    found = {
        "version": noisy_run.family(settings).VERSION,
        "budget": [case.epsilon, DELTA],
        "public": PUBLIC,
    }
    if settings.warm_start:
        found |= {
            "images": params.generator(dataset, "dp_moments").model_dump(),
            "of_version": dp_moments.VERSION,
        }
        found["augmentation"] = profile.augmentation and profile.augmentation.model_dump()
    return standard(
        {**settings.model_dump(), **found, "partition": _dealing(params, case).model_dump()}
    )


def dealt(
    params: config.Params, case: Case, seed: int, train: Images
) -> tuple[Images, dict[str, Images]]:
    """(public images, each client's records)."""
    rng = np.random.default_rng(seeds.derive(seed, NAME))
    public, rest = (train[rows] for rows in partitions.split(train.labels, [PUBLIC], rng))
    parts = partitions.deal(rest.labels, _dealing(params, case), rng)
    return public, {client: rest[rows] for client, rows in parts.items()}


def measure(
    params: config.Params, dataset: str, case: Case, seed: int, train: Images, test: Images
) -> list[dict]:
    """One run: a dict for each epsilon that it is read at."""
    began, settings = cpu_seconds(), settings_of(params, dataset, case)
    public, data = dealt(params, case, seed, train)
    profile = params.profiles[dataset].model_copy(update={"classifier": settings.network})
    model = classifier.new(profile, seeds.derive(seed, "init"), activation=settings.activation)
    accounts, first = _begun(params, dataset, case, settings, data, model, seed)
    module, source = noisy_run.family(settings), OsEntropy()
    engine = module.engine(
        {
            client: module.Client(_copy(profile, settings), own, accounts[client], source)
            for client, own in data.items()
        }
    )
    state = module.start(first, settings, Public(_copy(profile, settings), public), len(data))
    account, found, rounds = accounts[CLIENTS[0]], [], 0
    reads = _reads(case, settings, dataset)
    for number in tqdm(range(1, settings.rounds + 1), desc=NAME, disable=None, mininterval=1):
        replies = engine.call(Payload(state.sent, {"round": number, **state.asked}))
        if not replies:
            break
        state, rounds = module.step(state, replies), number
        if account.steps in reads:
            found.append(_read(reads[account.steps], model, state.weights, account, rounds, test))
    if not found or found[-1]["steps"] < account.steps:
        found.append(_read(case.epsilon, model, state.weights, account, rounds, test))
    return [{"seed": seed, **one, "cpu_seconds": cpu_seconds() - began} for one in found]


def row(dataset: str, name: str, epsilon: float, settings: dict, runs: list[dict]) -> dict:
    """The table's line for a cell: means over its runs."""
    case = CASES[name]
    mean = {
        field: float(np.mean([run[field] for run in runs])) for field in runs[0] if field != "seed"
    }
    return {
        "dataset": dataset,
        "case": name,
        "epsilon": epsilon,
        "accuracy": mean.pop("accuracy"),
        "spread": float(np.std([run["accuracy"] for run in runs])),
        "seeds": len(runs),
        **{
            other: _at(getattr(case, other).get(dataset), epsilon, case)
            for other in ("published", "gate")
        },
        **mean,
        "settings": settings,
        "runs": runs,
    }


def main() -> None:
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


def _dealing(params: config.Params, case: Case) -> Partition:
    asked = {**params.partition.model_dump(), **case.partition, "clients": CLIENTS, "small": None}
    return Partition.model_validate(asked)


def _begun(
    params, dataset: str, case: Case, settings: Block, data: dict[str, Images], model, seed: int
):
    """(each client's account, the weights before the first round)."""
    account = noisy_run.family(settings).account
    if not settings.warm_start:
        return {client: account(case.epsilon, DELTA, settings) for client in data}, state_of(model)
    space, start = public_space(params.profiles[dataset]), settings.warm_start
    plan = warm_start.plan(
        params.generator(dataset, "dp_moments"), case.epsilon, DELTA, start.share, space
    )
    plans, sources = dict.fromkeys(data, plan), {client: OsEntropy() for client in data}
    warps = params.profiles[dataset].augmentation
    weights, _ = warm_start.trained(
        model, start, warps, data, plans, sources, seeds.derive(seed, "warm_start")
    )
    left, spent = warm_start.continuous(DELTA), warm_start.steps(plan)
    return {client: account(case.epsilon, left, settings, spent) for client in data}, weights


def _copy(profile, settings: Block):
    return classifier.new(profile, 0, activation=settings.activation)


def _reads(case: Case, settings: Block, dataset: str) -> dict[int, float]:
    """{steps taken: the epsilon that they cost}, where a published table has several for one run."""
    table = case.published.get(dataset)
    if not isinstance(table, dict):
        return {}
    how = {"sampling_rate": settings.sampling_rate, "noise_multiplier": settings.noise_multiplier}
    return {accounting.steps_for(epsilon=epsilon, delta=DELTA, **how): epsilon for epsilon in table}


def _read(epsilon: float, model, weights, account, rounds: int, test: Images) -> dict:
    accuracy = scores(with_state(model, weights), test)["accuracy"]
    return {"read_at": epsilon, "accuracy": accuracy, "rounds": rounds, **account.spent()}


def _at(table, epsilon: float, case: Case) -> float | None:
    if isinstance(table, dict):
        return table.get(epsilon)
    return table if epsilon == case.epsilon else None


def _add(
    params: config.Params, dataset: str, name: str, seed: int, train: Images, test: Images
) -> None:
    """Measures what is not kept, and keeps it; runs under other settings than today's give way."""
    settings = conditions(params, dataset, CASES[name])
    same = [line for line in kept(NAME) if (line["dataset"], line["case"]) == (dataset, name)]
    same = [line for line in same if line["settings"] == settings]
    if any(run["seed"] == seed for line in same for run in line["runs"]):
        return
    for run in measure(params, dataset, CASES[name], seed, train, test):
        epsilon = run.pop("read_at")
        told = f"{run['accuracy']:.4f} after {run['steps']} steps in {run['cpu_seconds']:.0f} CPU-seconds"
        print(dataset, f"{name!r}, epsilon {epsilon:g}, seed {seed}: {told}", flush=True)
        key = {"dataset": dataset, "case": name, "epsilon": epsilon}
        before = [
            line for line in kept(NAME) if all(line[field] == value for field, value in key.items())
        ]
        runs = [one for line in before if line["settings"] == settings for one in line["runs"]]
        others = [line for line in kept(NAME) if line not in before]
        runs = sorted([*runs, run], key=lambda one: one["seed"])
        rows = [*others, row(dataset, name, epsilon, settings, runs)]
        keep(
            NAME,
            sorted(
                rows,
                key=lambda line: (
                    line["dataset"],
                    list(CASES).index(line["case"]),
                    line["epsilon"],
                ),
            ),
        )


if __name__ == "__main__":
    main()
