"""Says how sure a figure is, and whether one method beats another.

All intervals are bootstrap intervals over the test images of this one run.
"""

from collections.abc import Container, Iterator, Mapping

import numpy as np

from pipelines import seeds
from pipelines.config.dp import DP_BASELINES
from pipelines.evaluation import intervals
from pipelines.reporting.findings import marked
from pipelines.reporting.formatting import number

# The fewest images or cells that must differ. Below it, no exact sign test tells two methods apart
# at 0.05, for 2 / 2^6 = 0.03.
FEWEST = 6
# PPPFL is compared with these. FedAvg is taken on the same generator's images.
RIVALS = ("local", "random_init", "fedavg", *DP_BASELINES)


def of_method(name: str, run: dict, seed: int) -> dict:
    """Returns the interval of a method's mean accuracy, and its paired difference to `local`.

    Args:
        name: Name of the method.
        run: What `collect.read` returned; its "correct" is read.
        seed: Seed of the run, from which the bootstrap's is derived.

    Returns:
        {"mean_accuracy_low", "mean_accuracy_high", "over_local", "over_local_low",
        "over_local_high"}. A value is None where there is no interval, or nothing to compare with.
    """
    interval = intervals.of_mean(run["correct"][name], seed=_seed(seed, name))
    over_local = intervals.Interval(None, None, None)
    if name != "local" and "local" in run["correct"]:
        over_local = _difference(name, "local", run, seed)
    return {
        "mean_accuracy_low": interval.low,
        "mean_accuracy_high": interval.high,
        "over_local": over_local.value,
        "over_local_low": over_local.low,
        "over_local_high": over_local.high,
    }


def of_pppfl(run: dict, generators: list[str], seed: int) -> list[dict]:
    """Returns the paired difference of PPPFL to each of RIVALS that ran, for each generator.

    Args:
        run: What `collect.read` returned; its "correct" is read.
        generators: The generators of the parameters.
        seed: Seed of the run, from which the bootstrap's is derived.

    Returns:
        [{"method", "rival", "difference", "low", "high", "differing"}]. "differing" counts the test
        images on which one method is right and the other wrong.
    """
    compared = []
    for method, rival in _pairs(run["correct"], generators):
        compared.append(_compared(method, rival, run, seed))
    return compared


def sentences(comparisons: list[dict], methods: Mapping[str, dict]) -> list[str]:
    """Returns one sentence per method compared, which gives every verdict, good or bad.

    Args:
        comparisons: What `of_pppfl` returned.
        methods: The methods of the summary.
    """
    verdicts = {}
    for entry in comparisons:
        rival = marked(entry["rival"], methods[entry["rival"]])
        verdicts.setdefault(entry["method"], []).append(_verdict({**entry, "rival": rival}))
    return [f"{marked(name, methods[name])} {', '.join(verdicts[name])}." for name in verdicts]


def standing(entry: dict) -> str:
    """Returns in words what a paired difference says of the rival.

    Args:
        entry: {"rival", "low", "high", "differing": number of images or cells that differ}.

    Example:
        >>> standing({"rival": "local", "low": 0.1, "high": 0.3, "differing": 40})
        'beats local by more than the interval'
        >>> standing({"rival": "local", "low": 0.1, "high": 0.3, "differing": 5})
        'cannot be told from local'
    """
    rival = entry["rival"]
    if entry["low"] is None or entry["differing"] < FEWEST:
        return f"cannot be told from {rival}"
    if entry["low"] > 0:
        return f"beats {rival} by more than the interval"
    if entry["high"] < 0:
        return f"loses to {rival} by more than the interval"
    return f"does not beat {rival} by more than the interval"


def _compared(method: str, rival: str, run: dict, seed: int) -> dict:
    """Returns one entry of `of_pppfl`."""
    value, low, high = _difference(method, rival, run, seed)
    differing = 0
    for client, right in run["correct"][method].items():
        differing += int(np.count_nonzero(right != run["correct"][rival][client]))
    return {
        "method": method,
        "rival": rival,
        "difference": value,
        "low": low,
        "high": high,
        "differing": differing,
    }


def _pairs(methods: Container[str], generators: list[str]) -> Iterator[tuple[str, str]]:
    """Yields PPPFL and a rival, for each generator and each of RIVALS that ran."""
    for generator in generators:
        for name in RIVALS:
            rival = f"{name}/{generator}" if name == "fedavg" else name
            if rival in methods:
                yield f"pppfl/{generator}", rival


def _verdict(entry: dict) -> str:
    """Returns the verdict of one comparison with its figures."""
    difference = number(entry["difference"], "+.3f")
    low = number(entry["low"], "+.3f")
    high = number(entry["high"], "+.3f")
    images = entry["differing"]
    return f"{standing(entry)} ({difference} [{low}, {high}]; {images} images differ)"


def _difference(method: str, rival: str, run: dict, seed: int) -> intervals.Interval:
    """Returns the mean accuracy of a method less that of its rival, image by image."""
    correct = run["correct"]
    return intervals.of_difference(correct[method], correct[rival], seed=_seed(seed, method, rival))


def _seed(seed: int, *names: str) -> int:
    """Returns the seed of a bootstrap."""
    return seeds.derive(seed, "bootstrap", *names)
