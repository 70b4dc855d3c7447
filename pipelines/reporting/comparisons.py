"""How sure a figure is, and whether one method beats another: intervals over the test images of this one run."""

from collections.abc import Iterator, Mapping

import numpy as np

from pipelines import seeds
from pipelines.config.dp import DP_BASELINES
from pipelines.evaluation import intervals
from pipelines.reporting.findings import marked
from pipelines.reporting.formatting import number

FEWEST = 6  # images or cells that differ; below, no exact sign test tells two methods apart at 0.05: 2 / 2^6 = 0.03
# what PPPFL is held against; fedavg on the same generator's images
RIVALS = ("local", "random_init", "fedavg", *DP_BASELINES)


def of_method(name: str, run: dict, seed: int) -> dict:
    """{"mean_accuracy_low", "mean_accuracy_high", "over_local", "over_local_low", "over_local_high"}: the ends of the
    method's own interval, and its paired difference to `local`. None where there is none (intervals.py)."""
    own = intervals.of_mean(run["correct"][name], seed=_seed(seed, name))
    over = (
        _difference(name, "local", run, seed)
        if name != "local" and "local" in run["correct"]
        else None
    )
    return {
        "mean_accuracy_low": own.low,
        "mean_accuracy_high": own.high,
        **{
            f"over_local{end}": value
            for end, value in zip(("", "_low", "_high"), over or (None,) * 3, strict=True)
        },
    }


def of_pppfl(run: dict, generators: list[str], seed: int) -> list[dict]:
    """[{"method", "rival", "difference", "low", "high", "differing"}] for each generator and each of RIVALS that ran,
    paired. differing: on how many test images one is right and the other wrong."""
    return [
        _compared(method, rival, run, seed) for method, rival in _pairs(run["correct"], generators)
    ]


def sentences(comparisons: list[dict], methods: Mapping[str, dict]) -> list[str]:
    """One sentence per method compared, its verdict either way. methods: of the summary."""
    found = {}
    for entry in comparisons:
        rival = marked(entry["rival"], methods[entry["rival"]])
        found.setdefault(entry["method"], []).append(_verdict({**entry, "rival": rival}))
    return [
        f"{marked(method, methods[method])} {', '.join(verdicts)}."
        for method, verdicts in found.items()
    ]


def standing(entry: dict) -> str:
    """Where a paired difference leaves its rival: {"rival", "low", "high", "differing": images or cells}."""
    rival, low, high = entry["rival"], entry["low"], entry["high"]
    if low is None or entry["differing"] < FEWEST:
        return f"cannot be told from {rival}"
    if low > 0:
        return f"beats {rival} by more than the interval"
    return f"{'loses to' if high < 0 else 'does not beat'} {rival} by more than the interval"


def _compared(method: str, rival: str, run: dict, seed: int) -> dict:
    correct = run["correct"]
    value, low, high = _difference(method, rival, run, seed)
    differing = sum(
        np.count_nonzero(correct[method][client] != correct[rival][client])
        for client in correct[method]
    )
    ends = {"difference": value, "low": low, "high": high}
    return {"method": method, "rival": rival, **ends, "differing": int(differing)}


def _pairs(methods, generators: list[str]) -> Iterator[tuple[str, str]]:
    for generator in generators:
        for rival in RIVALS:
            other = f"{rival}/{generator}" if rival == "fedavg" else rival
            if other in methods:
                yield f"pppfl/{generator}", other


def _verdict(entry: dict) -> str:
    ends = (number(entry[end], "+.3f") for end in ("difference", "low", "high"))
    return "{} ({} [{}, {}]; {} images differ)".format(standing(entry), *ends, entry["differing"])


def _difference(method: str, rival: str, run: dict, seed: int) -> intervals.Interval:
    correct = run["correct"]
    return intervals.of_difference(correct[method], correct[rival], seed=_seed(seed, method, rival))


def _seed(seed: int, *names: str) -> int:
    return seeds.derive(seed, "bootstrap", *names)
