"""What each experiment runs, as plain data: what `dvc exp run -S` overrides, its targets, whose figures are read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from pipelines import methods, seeds
from pipelines.config.dp import DP_BASELINES

EPSILONS = (1.0, 3.0, 5.0, 8.0, 10.0)  # of the five clients: the paper says 1 to 10
PRIVATE = ("dp_moments", "datalens")  # the quicker first
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
BESIDE = ("fedavg", "pooled", "local", "random_init")  # of the roads
PUBLIC = 0.05  # of the training images, for the noisy algorithms that look at some
NEWCOMERS = {  # rounds of the shared training: the paper's, and what it takes (benchmarks/outer_loop.py)
    "newcomers": 30,
    "newcomers 300 rounds": 300,
}
HANDED_OUT = {  # to newcomers; the last is the bar
    30: ("pppfl", "fedmeta", "fedavg", "pooled", "random_init"),
    300: ("pppfl", "fedavg", "pooled", "random_init"),
}
BOUNDS = ("local", "random_init", "fedavg_real", "pppfl_real")  # none depends on a generator
GROUPS = {
    "1-5": (1.0, 2.0, 3.0, 4.0, 5.0),
    "6-10": (6.0, 7.0, 8.0, 9.0, 10.0),
    "inf": (float("inf"),),
}
STABILISERS = {  # [ema, cosine] of PPPFL
    "neither": (False, False),
    "EMA": (True, False),
    "cosine": (False, True),
    "EMA and cosine": (True, True),
}


@dataclass(frozen=True)
class Asked:
    """What the command line asks for. clients: the roster of params.yaml. images: folder of raw files, or None for
    the one that params.yaml names. generators: of PRIVATE, whose images are learnt from where a plan has them all."""

    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    clients: tuple[str, ...]
    images: str | None = None
    generators: tuple[str, ...] = PRIVATE


@dataclass(frozen=True)
class Run:
    """One `dvc exp run`.

    methods: whose scores are kept. rounds: also their curves. fidelity: also how good the synthetic images are.
    newcomers: also what their models are worth to clients that were held out.
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
        words = "-".join(self.variant.replace(",", "").split())
        return "-".join(filter(None, [self.dataset, words, f"seed{self.seed}"]))


def table2(asked: Asked) -> Iterator[Run]:
    """Every method at the paper's setting on images of each private generator; the bounds, which read none, once."""
    for generator in asked.generators:
        bounds = BOUNDS if generator == PRIVATE[0] else ()
        yield from _all_methods(asked, generator, (*FEDERATED, *OTHERS, *bounds))


def table3(asked: Asked) -> Iterator[Run]:
    """The same on images of a GAN without privacy."""
    yield from _all_methods(asked, "gan", (*FEDERATED, *OTHERS, "local", "random_init"))


def table5(asked: Asked) -> Iterator[Run]:
    """PPPFL and its images, all clients' epsilons from one group; the partition of a seed is the same in each."""
    for generator, dataset, seed in _by_generator(asked):
        for group, values in GROUPS.items():
            order = np.random.default_rng(seeds.derive(seed, "table5", group)).permutation(values)
            budgets = dict(zip(asked.clients, cycle(map(float, order))))
            overrides = {
                **_setting(asked, dataset, seed, (generator,), budgets),
                "fine_tune.every": None,
            }
            checks = (f"check_quality@{dataset}-{client}-{generator}" for client in asked.clients)
            targets, reported = (*_pppfl(dataset, (generator,)), *checks), _reported((generator,))
            yield Run(
                dataset,
                seed,
                of_images(generator, group),
                overrides,
                targets,
                reported,
                fidelity=True,
            )


def figure2(asked: Asked) -> Iterator[Run]:
    """PPPFL with and without each of its stabilisers."""
    for generator, dataset, seed in _by_generator(asked):
        for name, (ema, cosine) in STABILISERS.items():
            switches = {"meta.ema": ema, "meta.cosine": cosine, "fine_tune.every": 10}
            overrides = {**_setting(asked, dataset, seed, (generator,)), **switches}
            targets, reported = _pppfl(dataset, (generator,)), _reported((generator,))
            yield Run(
                dataset, seed, of_images(generator, name), overrides, targets, reported, rounds=True
            )


def roads(asked: Asked) -> Iterator[Run]:
    """PPPFL and its images against federated noisy training, from equal budgets."""
    for dataset, seed in _cells(asked):
        overrides = {
            **_setting(asked, dataset, seed, (PRIVATE[0],)),
            "prepare.public_fraction": PUBLIC,
            "dp_baselines.algorithms": list(DP_BASELINES),
            "baselines.algorithms": list(BESIDE),
            "fine_tune.every": None,
        }
        noisy = (f"train_dp_baseline@{dataset}-{name}" for name in DP_BASELINES)
        targets = (
            *_pppfl(dataset, (PRIVATE[0],)),
            *(f"train_baseline@{dataset}-{name}" for name in BESIDE),
            *noisy,
        )
        yield Run(
            dataset,
            seed,
            "roads",
            overrides,
            targets,
            (*_reported((PRIVATE[0],), *BESIDE), *DP_BASELINES),
        )


def newcomers(asked: Asked) -> Iterator[Run]:
    """Clients held out in their turn, who adapt a model of the others' images with few labels of their own."""
    generator = PRIVATE[0]
    for variant, rounds in NEWCOMERS.items():
        for dataset, seed in _cells(asked):
            overrides = {
                **_setting(asked, dataset, seed, (generator,)),
                **dict.fromkeys(
                    ("meta.rounds", "baselines.fedmeta.rounds", "baselines.fedavg.rounds"), rounds
                ),
                "new_clients.algorithms": list(HANDED_OUT[rounds]),
            }
            yield Run(
                dataset,
                seed,
                variant,
                overrides,
                (f"new_clients@{dataset}-{generator}",),
                (),
                newcomers=True,
            )


def of_images(generator: str, name: str) -> str:
    """A run's variant, where a plan has several on images of each generator."""
    return f"{name}, {generator}"


STORES: dict[str, Callable[[Asked], Iterator[Run]]] = {
    "table2": table2,
    "table3": table3,
    "table5": table5,
    "figure2": figure2,
    "roads": roads,
    "newcomers": newcomers,
}


def _all_methods(asked: Asked, generator: str, algorithms: tuple[str, ...]) -> Iterator[Run]:
    for dataset, seed in _cells(asked):
        overrides = {
            **_setting(asked, dataset, seed, (generator,)),
            "baselines.algorithms": list(algorithms),
        }
        targets = (
            *_pppfl(dataset, (generator,)),
            *(f"train_baseline@{dataset}-{name}" for name in algorithms),
        )
        yield Run(
            dataset, seed, generator, overrides, targets, _reported((generator,), *algorithms)
        )


def _cells(asked: Asked) -> Iterator[tuple[str, int]]:
    """Every data set once before any seed twice."""
    return ((dataset, seed) for seed in asked.seeds for dataset in asked.datasets)


def _by_generator(asked: Asked) -> Iterator[tuple[str, str, int]]:
    """The quicker generator's cells before any of the slower one."""
    return ((generator, *cell) for generator in asked.generators for cell in _cells(asked))


def _setting(
    asked: Asked,
    dataset: str,
    seed: int,
    generators: tuple[str, ...],
    budgets: dict[str, float] | None = None,
) -> dict[str, object]:
    """The paper's, where the parameters might say otherwise: label skew, no client cut small, budgets in 1 to 10."""
    budgets = budgets or dict(zip(asked.clients, cycle(EPSILONS)))
    return {
        "seed": seed,
        "datasets": [dataset],
        **({"prepare.root": asked.images} if asked.images else {}),
        "partition.scheme": "dirichlet",
        "partition.alpha": 0.5,
        "partition.small": None,
        "prepare.public_fraction": 0.0,
        "dp_baselines.algorithms": ["dpsgd"],  # which runs only where it is a target
        "synthesis.generators": list(generators),
        **{f"clients.{client}.epsilon": epsilon for client, epsilon in budgets.items()},
    }


def _pppfl(dataset: str, generators: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"fine_tune@{dataset}-{name}" for name in generators)


def _reported(generators: tuple[str, ...], *algorithms: str) -> tuple[str, ...]:
    """The methods' names in the results, PPPFL first."""
    found = [
        name for algorithm in algorithms for name in methods.reported(algorithm, list(generators))
    ]
    return (*(f"pppfl/{name}" for name in generators), *found)
