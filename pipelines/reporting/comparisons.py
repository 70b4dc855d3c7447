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
        "over_local_high", "over_local_differing": number of images that differ}. A value is None
        where there is no interval, or nothing to compare with.
    """
    interval = intervals.of_mean(run["correct"][name], seed=_seed(seed, name))
    over_local = intervals.Interval(None, None, None)
    images = 0
    if name != "local" and "local" in run["correct"]:
        over_local = _difference(name, "local", run, seed)
        images = differing(run["correct"][name], run["correct"]["local"])
    return {
        "mean_accuracy_low": interval.low,
        "mean_accuracy_high": interval.high,
        "over_local": over_local.value,
        "over_local_low": over_local.low,
        "over_local_high": over_local.high,
        "over_local_differing": images,
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
        compared.append(paired(method, rival, run, seed))
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


def verdict(entry: Mapping) -> int:
    """Returns 1 where a paired difference is shown to be a gain, -1 a loss, and 0 if none is shown.

    Args:
        entry: {"low", "high", "differing": number of images or cells that differ}.

    Example:
        >>> verdict({"low": 0.1, "high": 0.3, "differing": 40})
        1
        >>> verdict({"low": 0.1, "high": 0.3, "differing": 5})
        0
    """
    if entry["low"] is None or entry["differing"] < FEWEST:
        return 0
    return int(entry["low"] > 0) - int(entry["high"] < 0)


def standing(entry: dict) -> str:
    """Returns in words what a paired difference says of the rival.

    Args:
        entry: {"rival", "low", "high", "differing"}, as `verdict` takes it.

    Example:
        >>> standing({"rival": "local", "low": 0.1, "high": 0.3, "differing": 40})
        'is ahead of local'
        >>> standing({"rival": "local", "low": -0.1, "high": 0.3, "differing": 40})
        'shows no difference to local'
    """
    words = {1: "is ahead of", 0: "shows no difference to", -1: "is behind"}
    return f"{words[verdict(entry)]} {entry['rival']}"


def paired(method: str, rival: str, run: dict, seed: int) -> dict:
    """Returns the paired difference of a method's mean accuracy to a rival's.

    Args:
        method: Name of the method.
        rival: Name of the other one.
        run: What `collect.read` returned; its "correct" is read.
        seed: Seed of the run, from which the bootstrap's is derived.

    Returns:
        One entry of `of_pppfl`.
    """
    value, low, high = _difference(method, rival, run, seed)
    return {
        "method": method,
        "rival": rival,
        "difference": value,
        "low": low,
        "high": high,
        "differing": differing(run["correct"][method], run["correct"][rival]),
    }


def differing(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> int:
    """Returns the number of test images on which one method is right and the other wrong.

    Args:
        ours: {client: bool [n]}, which of its test images a method classifies rightly.
        theirs: The same of the other method.
    """
    count = 0
    for client, right in ours.items():
        count += int(np.count_nonzero(right != theirs[client]))
    return count


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
