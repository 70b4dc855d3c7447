"""Measures private heads on fixed features, on the real test set: one owner, or ten clients.

    python -m benchmarks.dp_head --images ../shared/datasets             # an hour; resumes
    python -m benchmarks.dp_head --datasets mnist --sizes 12000 --epsilons 1 --seeds 0
    python -m benchmarks.dp_head --datasets cifar10 --images raw --sizes 60000 --epsilons 1 3 10
    python -m benchmarks.dp_head --datasets cifar10 --images raw --network encoder --sizes 10000 \
        --epsilons 1 3 10
    python -m benchmarks.dp_head --datasets cifar10 --images raw --network encoder --sizes 60000 \
        --epsilons 3 --clients 5 --clients-epsilon 3

With `--copies 1` a record has no warped copies, whatever the profile says (`warps`). With
`--network encoder` the head is on the features of the frozen network that the profile names.
Its weights were trained on public images.

An owner's records are an IID sample of the training images; 60,000 are all of them. The whole budget
goes into the head (`dp_head` with `head_share` 1). Where clients train together, each adds noise of
its own, and answers a round a step (`dpsgd_head`). Ten have two pieces each of the records sorted
by label. Five have label skew (Dirichlet 0.5). Settings are the shipped ones. They were found on
training images that lie outside the client. Noise comes from the operating system. The last
iterate's average is tested once, on the whole test set.

`cpu_seconds` are those of one client: its features, and the release. The public basis is made once
on a machine, and is not part of it. Cells that are stored under the same settings are not measured
again.
"""

import argparse
import io
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.common import cells, cpu_seconds, has, keep, kept, show, without
from pipelines import config, seeds
from pipelines.config.data import ON_FIXED_FEATURES, Partition
from pipelines.config.heads import Head, HeadWarps
from pipelines.datasets import partition_schemes
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import dpsgd_head
from pipelines.federation.core import rounds
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.inprocess import in_process
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import dp_head, release
from pipelines.training import classifier, fixed_features, linear_head
from pipelines.training.fixed_features import Fixed

NAME = "dp_head"
DATASETS = ("mnist", "fashion_mnist")
OTHERS = ("cifar10",)
SIZES = (300, 1_000, 3_000, 12_000, 60_000)
EPSILONS = (0.2, 1.0, 2.0, 3.0, 10.0)
# numbers of clients that train together: with label skew, and with pieces of sorted records
SKEWED = 5
SORTED = 10
# pieces of the records sorted by label that each of the latter has
PIECES = 2
ALPHA = 0.5
HIDDEN = ("settings", "runs")


@dataclass(frozen=True)
class Data:
    """Holds the images of a data set, and the features of the test images.

    Attributes:
        params: The parameters of params.yaml.
        dataset: The name of the data set.
        train: Its training images.
        test: Its test images.
        fixed: Which fixed features they have.
    """

    params: config.Params
    dataset: str
    train: Images
    test: Images
    fixed: Fixed

    @cached_property
    def test_inputs(self) -> np.ndarray:
        """Returns the inputs [n, d] of the test images: features, and the constant of the bias."""
        return linear_head.inputs(self.test, self.fixed)

    def accuracy(self, head: np.ndarray) -> float:
        """Returns the accuracy of a head [K, d] on the test images."""
        return float(np.mean((self.test_inputs @ head.T).argmax(1) == self.test.labels))


def measured(data: Data, key: dict, seed: int) -> dict:
    """Makes one run of a cell, and returns its seed, accuracy and a client's CPU-seconds.

    Args:
        data: The data set.
        key: The cell: "dataset", "records", "epsilon", "clients", "network",
            "copies".
        seed: Of the run.
    """
    rng = np.random.default_rng(seeds.derive(seed, NAME, key["dataset"]))
    if key["clients"] == 1:
        records = data.train[np.sort(rng.permutation(len(data.train))[: key["records"]])]
        head, seconds = alone(data, records, key["epsilon"])
    else:
        head, seconds = together(data, dealt(data.train, key["clients"], rng), key["epsilon"])
    return {"seed": seed, "accuracy": data.accuracy(head), "cpu_seconds": seconds}


def alone(data: Data, records: Images, epsilon: float) -> tuple[np.ndarray, float]:
    """Returns the head that one owner releases, and its CPU-seconds.

    Args:
        data: The data set.
        records: The owner's.
        epsilon: The budget.
    """
    settings = data.params.generator(data.dataset, NAME).model_copy(update={"head_share": 1.0})
    seconds = seconds_of_features(records, data.fixed, settings.warps)
    space = release.public_space(data.params.profiles[data.dataset])
    plan = dp_head.plan(settings, Budget(epsilon, data.params.privacy.delta), space)
    began = cpu_seconds()
    state = dp_head.fit(records, plan, OsEntropy(), seed=0)
    return state[dp_head.HEAD], seconds + cpu_seconds() - began


def seconds_of_features(records: Images, fixed: Fixed, warps: HeadWarps | None) -> float:
    """Returns what it takes to compute the features of records, which are then on disk.

    Copies take as long as their records, but for the warps, which the release makes anew.
    """
    began = cpu_seconds()
    fixed_features.features(records, fixed)
    seconds = cpu_seconds() - began
    linear_head.lattice_inputs(records, fixed, warps)
    return seconds * (warps.copies if warps else 1)


def dealt(train: Images, count: int, rng: np.random.Generator) -> dict[str, Images]:
    """Deals all records to so many clients, SKEWED or SORTED."""
    names = [f"c{number}" for number in range(count)]
    if count == SKEWED:
        settings = Partition.model_construct(clients=names, alpha=ALPHA)
        parts = next(partition_schemes.dirichlet(train.labels, settings, rng))
    else:
        settings = Partition.model_construct(clients=names, shards_per_client=PIECES)
        parts = next(partition_schemes.label_shards(train.labels, settings, rng))
    return {name: train[rows] for name, rows in zip(names, parts)}


def together(data: Data, records: dict[str, Images], epsilon: float) -> tuple[np.ndarray, float]:
    """Returns the head that clients train together, and the CPU-seconds of one of them.

    Args:
        data: The data set.
        records: {client: its records}.
        epsilon: The budget of each.
    """
    settings = data.params.training(data.dataset, "dpsgd_head")
    seconds = 0.0
    for images in records.values():
        seconds += seconds_of_features(images, data.fixed, settings.warps)
    profile = data.params.profiles[data.dataset]
    profile = profile.model_copy(update={"classifier": settings.network})
    delta = data.params.privacy.delta
    task = NoisyTask(
        build=lambda: classifier.new(profile, 0),
        data=records,
        accounts={client: dpsgd_head.new_account(epsilon, delta, settings) for client in records},
        sources={client: OsEntropy() for client in records},
        fixed=data.fixed,
    )
    began = cpu_seconds()
    history = rounds.run(
        dpsgd_head.server(task, settings),
        dpsgd_head.server_step,
        in_process(dpsgd_head, task, settings),
        rounds=settings.rounds,
        name="dpsgd_head",
        last_alone=True,
    )
    seconds += cpu_seconds() - began
    (head,) = history.models[-1].values()
    return head, seconds / len(records)


def wanted(
    params: config.Params, arguments: argparse.Namespace, dataset: str, available: int
) -> list[dict]:
    """Returns the keys of all cells of a data set with so many records available."""
    keys = []
    for records in arguments.sizes:
        for epsilon in arguments.epsilons:
            key = {"dataset": dataset, "records": min(records, available)}
            key |= {"epsilon": epsilon, "clients": 1, "network": arguments.network}
            keys.append({**key, "copies": copies(params.generator(dataset, NAME))})
    for clients in arguments.clients if max(SIZES) in arguments.sizes else ():
        together = {**key, "epsilon": arguments.clients_epsilon, "clients": clients}
        keys.append({**together, "copies": copies(params.training(dataset, "dpsgd_head"))})
    return keys


def copies(settings: Head) -> int:
    """Returns how many copies a record has, itself among them."""
    return settings.warps.copies if settings.warps else 1


def on_network(
    params: config.Params, dataset: str, network: str, *, warped: bool = True
) -> config.Params:
    """Returns the parameters with the heads of a data set on a network's features.

    Args:
        params: The parameters of params.yaml.
        dataset: The name of the data set.
        network: `scatter` or `encoder`.
        warped: Records have the warped copies that the profile names, if it names some.
    """
    profile = params.profiles[dataset]
    block = {"network": network} | ({} if warped else {"warps": None})
    changes = {
        "synthesis": {**profile.synthesis, NAME: profile.synthesis.get(NAME, {}) | block},
        "training": {
            **profile.training,
            "dpsgd_head": profile.training.get("dpsgd_head", {}) | block,
        },
    }
    profiles = {**params.profiles, dataset: profile.model_copy(update=changes)}
    return params.model_copy(update={"profiles": profiles})


def settings_of(params: config.Params, key: dict) -> dict:
    """Returns all that a figure depends on but the seed."""
    name = NAME if key["clients"] == 1 else "dpsgd_head"
    block = params.generator if key["clients"] == 1 else params.training
    settings = block(key["dataset"], name)
    kept_fields = ("clipping_norm", "count_share", "momentum", "averaging", "schedules")
    encoder = params.profiles[key["dataset"]].encoder
    content = settings.model_dump(include=set(kept_fields))
    if settings.warps:
        content["warps"] = settings.warps.model_dump()
    return {**content, "encoder": encoder.model_dump()} if key["network"] == "encoder" else content


def add(key: dict, settings: dict, run: dict) -> None:
    """Stores a run in its cell, whose earlier runs stay if their settings are the same."""
    rows = kept(NAME)
    (cell,) = [row for row in rows if has(row, key)] or [{"runs": [], "settings": settings}]
    runs = cell["runs"] if cell["settings"] == settings else []
    runs = [*(other for other in runs if other["seed"] != run["seed"]), run]
    accuracies = [other["accuracy"] for other in runs]
    line = {
        **key,
        "accuracy": float(np.mean(accuracies)),
        "spread": float(np.std(accuracies)),
        "seeds": len(runs),
        "cpu_seconds": float(np.mean([other["cpu_seconds"] for other in runs])),
        "settings": settings,
        "runs": runs,
    }
    keep(NAME, sorted([*without(rows, key), line], key=_order))


def _order(row: dict) -> tuple:
    columns = ("dataset", "network", "clients", "records", "epsilon", "copies")
    return tuple(row[column] for column in columns)


def main() -> None:
    """Measures the cells that are not stored yet, and prints all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, default=Path("../shared/datasets"))
    parser.add_argument(
        "--datasets", nargs="+", default=list(DATASETS), choices=(*DATASETS, *OTHERS)
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument(
        "--clients", nargs="*", type=int, default=[SORTED], choices=(SKEWED, SORTED)
    )
    parser.add_argument("--clients-epsilon", type=float, default=2.0)
    parser.add_argument("--network", default="scatter", choices=ON_FIXED_FEATURES)
    parser.add_argument("--copies", type=int, choices=(1,), help="none but the record itself")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    params = config.load()
    for seed, dataset, train, test in cells(
        params, arguments.datasets, arguments.seeds, arguments.images
    ):
        params = on_network(params, dataset, arguments.network, warped=arguments.copies != 1)
        fixed = fixed_features.of(params.profiles[dataset], arguments.network)
        data = Data(params, dataset, train, test, fixed)
        for key in wanted(params, arguments, dataset, len(train)):
            settings = settings_of(params, key)
            stored = [row for row in kept(NAME) if has(row, {**key, "settings": settings})]
            if any(run["seed"] == seed for row in stored for run in row["runs"]):
                continue
            with redirect_stdout(io.StringIO()):
                run = measured(data, key, seed)
            add(key, settings, run)
    show(kept(NAME), hidden=HIDDEN)


if __name__ == "__main__":
    main()
