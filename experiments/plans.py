"""Plans the runs of each experiment as plain data.

A run has the overrides of `dvc exp run -S`, its targets, and the methods whose figures are read.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from pipelines import methods, seeds
from pipelines.config.dp import DP_BASELINES

# Epsilons of the five clients. The paper says 1 to 10.
EPSILONS = (1.0, 3.0, 5.0, 8.0, 10.0)
# Private generators, the quicker one first.
PRIVATE = ("dp_moments", "datalens")
FEDERATED = (
    "fedavg",
    "fednova",
    "fedprox",
    "scaffold",
    "fedmeta",
    "pppfl_paper",
    "reptile",
    "sda_fl",
)
OTHERS = ("pooled", "single")
# Methods without noise in the study of roads.
BESIDE = ("fedavg", "pooled", "local", "random_init")
# Fraction of the training images for the noisy algorithms that look at public ones.
PUBLIC = 0.05
# How many clients are held out in the study of newcomers: the first ones of params.yaml.
NEWCOMERS = 3
# Models that newcomers start from. The others are compared with the last one.
HANDED_OUT = ("pppfl", "fedmeta", "fedavg", "pooled", "random_init")
# None of these depends on a generator.
BOUNDS = ("local", "random_init", "fedavg_real", "pppfl_real")
# What a plan with a run per method may be asked for.
MEASURED = ("pppfl", *FEDERATED, *OTHERS, *BOUNDS, *DP_BASELINES)
GROUPS = {
    "1-5": (1.0, 2.0, 3.0, 4.0, 5.0),
    "6-10": (6.0, 7.0, 8.0, 9.0, 10.0),
    "inf": (float("inf"),),
}
# (ema, cosine) of PPPFL.
STABILISERS = {
    "neither": (False, False),
    "EMA": (True, False),
    "cosine": (False, True),
    "EMA and cosine": (True, True),
}


@dataclass(frozen=True)
class Request:
    """Describes what the command line wants measured.

    Attributes:
        datasets: Names of data sets.
        seeds: Seeds of the runs.
        clients: Names of the clients in params.yaml.
        images: Folder of raw files; None for the one that params.yaml names.
        generators: Those of PRIVATE whose images are learnt from, if a plan has them all.
        methods: PPPFL and the algorithms to measure; none means all of a plan's.
    """

    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    clients: tuple[str, ...]
    images: str | None = None
    generators: tuple[str, ...] = PRIVATE
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """Describes one `dvc exp run`.

    Attributes:
        dataset: Name of the data set.
        seed: Seed of the run.
        variant: Tells the runs of a plan apart that share data set and seed.
        overrides: {dotted key of params.yaml: value}.
        targets: The stages to run.
        methods: The methods whose scores are stored.
        rounds: Store the scores of the shared model by round as well.
        fidelity: Store as well how close the synthetic images are to real ones.
        newcomers: Store as well what the models are worth to clients that were held out.
    """

    dataset: str
    seed: int
    variant: str
    overrides: dict[str, object]
    targets: tuple[str, ...]
    methods: tuple[str, ...]
    rounds: bool = False
    fidelity: bool = False
    newcomers: bool = False

    @property
    def name(self) -> str:
        """Returns the run's name, which is fit for a Git reference.

        Example:
            >>> Run("mnist", 0, "1-5, dp_moments", {}, (), ()).name
            'mnist-1-5-dp_moments-seed0'
        """
        words = "-".join(self.variant.replace(",", "").split())
        return "-".join(filter(None, [self.dataset, words, f"seed{self.seed}"]))


def table2(request: Request) -> Iterator[Run]:
    """Yields a run per method at the paper's setting, on images of each private generator.

    The bounds read no images, so they run with the first generator only.
    """
    for generator in request.generators:
        bounds = BOUNDS if generator == PRIVATE[0] else ()
        yield from _all_methods(request, generator, (*FEDERATED, *OTHERS, *bounds))


def table3(request: Request) -> Iterator[Run]:
    """Yields a run per method at the paper's setting, on images of a GAN without privacy."""
    yield from _all_methods(request, "gan", (*FEDERATED, *OTHERS, "local", "random_init"))


def table5(request: Request) -> Iterator[Run]:
    """Yields PPPFL and its images, with all clients' epsilons from one group.

    The partition of a seed is the same in each group.
    """
    for generator, dataset, seed in _by_generator(request):
        checks = _targets("check_quality", dataset, request.clients, f"-{generator}")
        for group, values in GROUPS.items():
            order = np.random.default_rng(seeds.derive(seed, "table5", group)).permutation(values)
            budgets = dict(zip(request.clients, cycle(map(float, order))))
            overrides = _setting(request, dataset, seed, generator, budgets)
            overrides["fine_tune.every"] = None
            yield Run(
                dataset,
                seed,
                of_images(generator, group),
                overrides,
                targets=(_fine_tune(dataset, generator), *checks),
                methods=(f"pppfl/{generator}",),
                fidelity=True,
            )


def figure2(request: Request) -> Iterator[Run]:
    """Yields PPPFL with and without each of its stabilisers."""
    for generator, dataset, seed in _by_generator(request):
        for name, (ema, cosine) in STABILISERS.items():
            overrides = _setting(request, dataset, seed, generator)
            overrides |= {"meta.ema": ema, "meta.cosine": cosine, "fine_tune.every": None}
            yield Run(
                dataset,
                seed,
                of_images(generator, name),
                overrides,
                targets=(_fine_tune(dataset, generator),),
                methods=(f"pppfl/{generator}",),
                rounds=True,
            )


def roads(request: Request) -> Iterator[Run]:
    """Yields a run per method: PPPFL and its images beside federated noisy training.

    Every method has the same budgets.
    """
    generator = PRIVATE[0]
    for dataset, seed in _cells(request):
        setting = _setting(request, dataset, seed, generator)
        setting |= {"prepare.public_fraction": PUBLIC, "fine_tune.every": None}
        yield from _by_method(request, dataset, seed, generator, setting, BESIDE)
        for algorithm in _asked(request, DP_BASELINES):
            yield Run(
                dataset,
                seed,
                algorithm,
                {**setting, "dp_baselines.algorithms": [algorithm]},
                targets=(f"train_dp_baseline@{dataset}-{algorithm}",),
                methods=(algorithm,),
            )


def newcomers(request: Request) -> Iterator[Run]:
    """Yields a run per model that each held-out client adapts. The others' images made it.

    The client has few labels of its own.
    """
    generator = PRIVATE[0]
    for dataset, seed in _cells(request):
        setting = _setting(request, dataset, seed, generator)
        setting["new_clients.held_out"] = list(request.clients[:NEWCOMERS])
        for algorithm in _asked(request, HANDED_OUT):
            yield Run(
                dataset,
                seed,
                of_images(generator, algorithm),
                {**setting, "new_clients.algorithms": [algorithm]},
                targets=(f"new_clients@{dataset}-{generator}",),
                methods=(),
                newcomers=True,
            )


def of_images(generator: str, name: str) -> str:
    """Returns a run's variant, for a plan with several runs on images of each generator.

    Example:
        >>> of_images("dp_moments", "EMA")
        'EMA, dp_moments'
    """
    return f"{name}, {generator}"


STORES: dict[str, Callable[[Request], Iterator[Run]]] = {
    "table2": table2,
    "table3": table3,
    "table5": table5,
    "figure2": figure2,
    "roads": roads,
    "newcomers": newcomers,
}


def _all_methods(request: Request, generator: str, algorithms: tuple[str, ...]) -> Iterator[Run]:
    """Yields PPPFL and the algorithms at the paper's setting, on images of one generator."""
    for dataset, seed in _cells(request):
        setting = _setting(request, dataset, seed, generator)
        yield from _by_method(request, dataset, seed, generator, setting, algorithms)


def _by_method(
    request: Request,
    dataset: str,
    seed: int,
    generator: str,
    setting: dict[str, object],
    algorithms: tuple[str, ...],
) -> Iterator[Run]:
    """Yields PPPFL's run and one for each algorithm. What they share, DVC makes once."""
    if _asked(request, ("pppfl",)):
        yield Run(
            dataset,
            seed,
            of_images(generator, "pppfl"),
            {**setting, "baselines.algorithms": []},
            targets=(_fine_tune(dataset, generator),),
            methods=(f"pppfl/{generator}",),
        )
    for algorithm in _asked(request, algorithms):
        reads_images = algorithm not in BOUNDS
        yield Run(
            dataset,
            seed,
            of_images(generator, algorithm) if reads_images else algorithm,
            {**setting, "baselines.algorithms": [algorithm]},
            targets=(f"train_baseline@{dataset}-{algorithm}",),
            methods=tuple(methods.reported(algorithm, [generator])),
        )


def _asked(request: Request, names: Iterable[str]) -> list[str]:
    """Returns those of some methods that the command line wants measured."""
    return [name for name in names if not request.methods or name in request.methods]


def _cells(request: Request) -> Iterator[tuple[str, int]]:
    """Yields every data set once before any seed twice."""
    for seed in request.seeds:
        for dataset in request.datasets:
            yield dataset, seed


def _by_generator(request: Request) -> Iterator[tuple[str, str, int]]:
    """Yields (generator, data set, seed) of PPPFL, the quicker generator's before the slower one's."""
    for generator in request.generators if _asked(request, ("pppfl",)) else ():
        for dataset, seed in _cells(request):
            yield generator, dataset, seed


def _setting(
    request: Request,
    dataset: str,
    seed: int,
    generator: str,
    budgets: dict[str, float] | None = None,
) -> dict[str, object]:
    """Returns the overrides of the paper's setting, where the parameters might say otherwise.

    It has label skew, no client that is cut small, and budgets in 1 to 10.
    """
    overrides = {"seed": seed, "datasets": [dataset]}
    if request.images:
        overrides["prepare.root"] = request.images
    overrides |= {
        "partition.scheme": "dirichlet",
        "partition.alpha": 0.5,
        "partition.small": None,
        "prepare.public_fraction": 0.0,
        # It runs only where it is a target.
        "dp_baselines.algorithms": ["dpsgd"],
        "synthesis.generators": [generator],
    }
    budgets = budgets or dict(zip(request.clients, cycle(EPSILONS)))
    for client, epsilon in budgets.items():
        overrides[f"clients.{client}.epsilon"] = epsilon
    return overrides


def _targets(stage: str, dataset: str, names: Iterable[str], end: str = "") -> list[str]:
    """Returns the stage's cells of one data set."""
    return [f"{stage}@{dataset}-{name}{end}" for name in names]


def _fine_tune(dataset: str, generator: str) -> str:
    """Returns the stage cell that PPPFL ends with."""
    return f"fine_tune@{dataset}-{generator}"
