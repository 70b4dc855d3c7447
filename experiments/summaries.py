"""Computes means, intervals and rank correlations over stored runs.

The unit is a cell: one client in one run (seed).
"""

from collections.abc import Mapping

import numpy as np
from scipy.stats import rankdata, spearmanr

from pipelines import seeds
from pipelines.evaluation import intervals
from pipelines.evaluation.metrics import METRICS, other_metrics

Cells = dict[tuple[int, str], float]
NOT_ALWAYS_KEPT = ("global_after", "global_elsewhere")
PERMUTATIONS = 10_000


def cells(rows: list[dict], method: str, field: str) -> Cells:
    """Returns one value per client and run, over the runs that have the method.

    Args:
        rows: Stored runs.
        method: Name of the method.
        field: A score that is stored by client.

    Returns:
        {(seed, client): value}. The value is None if an earlier run did not keep the field.
    """
    optional = field in NOT_ALWAYS_KEPT or field.startswith(tuple(m.name for m in other_metrics()))
    values = {}
    for row in rows:
        if method in row["methods"]:
            for client, scores in row["methods"][method]["clients"].items():
                value = scores.get(field) if optional else scores[field]
                values[row["seed"], client] = value
    return values


def means_of_other_metrics(rows: list[dict], method: str, moment: str = "") -> dict:
    """Returns the mean over cells of every metric but accuracy, by name.

    Args:
        rows: Stored runs.
        method: Name of the method.
        moment: "" for the scores after fine-tuning, "_before" for those before it.
    """
    means = {}
    for metric in other_metrics():
        means[metric.name] = mean(cells(rows, method, f"{metric.name}{moment}"))
    return means


def newcomers_cells(rows: list[dict], algorithm: str, labels: int, field: str) -> Cells:
    """Returns one value per draw of labels of each client that was held out, in each run.

    Args:
        rows: Stored runs with clients that were held out.
        algorithm: Whose model the newcomer was handed.
        labels: How many records the newcomer labelled.
        field: A score of the cell.

    Returns:
        {(seed, client and draw): value}.
    """
    values = {}
    for row in rows:
        for cell in row["newcomers"]["cells"]:
            if (cell["algorithm"], cell["labels"]) == (algorithm, labels):
                values[row["seed"], f"{cell['client']} {cell['draw']}"] = cell[field]
    return values


def newcomers_costs(rows: list[dict], algorithm: str, field: str) -> float | None:
    """Returns the mean over newcomers and runs of what the shared training cost.

    Args:
        rows: Stored runs with clients that were held out.
        algorithm: Whose training it was.
        field: A field of the costs.

    Returns:
        The mean, or None if a run did not keep its costs.
    """
    values = []
    for row in rows:
        costs = row["newcomers"].get("costs")
        if not costs:
            return None
        for cost in costs:
            if cost["algorithm"] == algorithm:
                values.append(float(cost[field]))
    return mean(values)


def ahead(ours: Cells, theirs: Cells) -> str:
    """Returns for how many newcomers a method is better on average over draws.

    A newcomer for whom both are level does not count as ahead.

    Example:
        >>> ours = {(0, "a 1"): 0.5, (0, "b 1"): 0.4}
        >>> ahead(ours, {(0, "a 1"): 0.4, (0, "b 1"): 0.4})
        '1/2'
    """
    differences = {}
    for seed, client_and_draw in ours.keys() & theirs.keys():
        newcomer = (seed, client_and_draw.partition(" ")[0])
        difference = ours[seed, client_and_draw] - theirs[seed, client_and_draw]
        differences.setdefault(newcomer, []).append(difference)
    count = sum(sum(draws) > intervals.ROUNDING for draws in differences.values())
    return f"{count}/{len(differences)}"


def mean(values: Mapping | list) -> float | None:
    """Returns the mean; None if there is no value, or if a run knows no figure.

    Example:
        >>> mean([1, 2])
        1.5
        >>> mean({("a", 0): 1.0, ("b", 0): None}) is None
        True
    """
    numbers = list(values.values()) if isinstance(values, Mapping) else list(values)
    return float(np.mean(numbers)) if numbers and None not in numbers else None


def over_clients(values: Cells) -> dict[str, float]:
    """Returns "worst" and "spread" (standard deviation) over a run's clients, as means over runs."""
    runs = {}
    for (seed, _), value in values.items():
        runs.setdefault(seed, []).append(value)
    return {
        "worst": mean(list(map(min, runs.values()))),
        "spread": mean(list(map(float, map(np.std, runs.values())))),
    }


def accuracies_in_both(
    rows: list[dict], first: str, second: str
) -> tuple[list[float], list[float]]:
    """Returns the accuracies of two methods, cell by cell, over the cells that both have.

    Args:
        rows: Stored runs.
        first: Name of a method.
        second: Name of another.
    """
    first_cells = cells(rows, first, "accuracy")
    second_cells = cells(rows, second, "accuracy")
    both = sorted(first_cells.keys() & second_cells.keys())
    return [first_cells[cell] for cell in both], [second_cells[cell] for cell in both]


def over_runs(rows: list[dict], method: str, field: str) -> float | None:
    """Returns the mean over runs of what a method has once in each.

    Args:
        rows: Stored runs.
        method: Name of the method.
        field: A figure of the method.

    Returns:
        The mean, or None if a run knows no figure.
    """
    values = []
    for row in rows:
        if method in row["methods"]:
            value = row["methods"][method].get(field)
            # JSON holds "inf" as text.
            values.append(None if value is None else float(value))
    return mean(values)


def selected(rows: list[dict], method: str) -> dict:
    """Returns the figures of selected rounds; a name says so if test data selected.

    All are None if one round alone was scored, so that there was nothing to select from.
    """
    columns = {"selected_mean_accuracy": "selected_mean_accuracy"}
    for metric in METRICS:
        columns[metric.best_key] = f"{metric.best_key}_test_selected"
    figures = {}
    for field, column in columns.items():
        figures[column] = over_runs(rows, method, field)
    for row in rows:
        if method in row["methods"] and row["methods"][method]["candidates"] <= 1:
            return dict.fromkeys(figures)
    return figures


def paired(ours: Cells, theirs: Cells, *names: str) -> intervals.Interval | None:
    """Returns the mean difference over the cells that both have, with its interval.

    Args:
        ours: Values of one method.
        theirs: Values of the other, which are subtracted.
        *names: Seed the bootstrap.

    Returns:
        The interval, or None if no cell has both.
    """
    differences = {}
    for cell in sorted(ours.keys() & theirs.keys()):
        # Equal accuracies differ in the last bits.
        differences[cell] = round(ours[cell] - theirs[cell], 12)
    if not differences:
        return None
    return intervals.over_cells(differences, seed=seeds.derive(0, *names))


def by_seed(ours: Cells, theirs: Cells) -> str:
    """Returns the mean difference in each seed, as text.

    Cells of one seed share their partition and noise, and seeds share nothing.
    """
    differences = {}
    for cell in sorted(ours.keys() & theirs.keys()):
        differences.setdefault(cell[0], []).append(ours[cell] - theirs[cell])
    return ", ".join(f"{np.mean(values):+.3f}" for values in differences.values())


def ends(name: str, interval: intervals.Interval | None) -> dict:
    """Returns an interval as columns; they are None if nothing is compared."""
    value, low, high = interval or (None, None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def by(rows: list[dict], field: str) -> dict[str, list[dict]]:
    """Groups rows by a field, in the order in which its values first come.

    Example:
        >>> by([{"seed": 1}, {"seed": 0}, {"seed": 1}], "seed")
        {1: [{'seed': 1}, {'seed': 1}], 0: [{'seed': 0}]}
    """
    groups = {}
    for row in rows:
        groups.setdefault(row[field], []).append(row)
    return groups


def methods(rows: list[dict]) -> dict[str, dict]:
    """Returns {method: its part of a run}, an algorithm's generators beside each other."""
    entries = {}
    for row in rows:
        for method, part in row["methods"].items():
            entries.setdefault(method, part)
    names = list(dict.fromkeys(method.partition("/")[0] for method in entries))
    order = sorted(entries, key=lambda method: (names.index(method.partition("/")[0]), method))
    return dict(zip(order, map(entries.get, order)))


def generators(rows: list[dict], method: str = "pppfl") -> list[str]:
    """Returns the generators that a method ran on, sorted."""
    names = set()
    for row in rows:
        for name in row["methods"]:
            if name.startswith(f"{method}/"):
                names.add(name.partition("/")[2])
    return sorted(names)


def gain_against_local(local: list[float], ours: list[float], *, seed: int = 0) -> dict:
    """Asks whether a client gains the more, the worse it does alone.

    The gain is b - a, ours less local. Held against a itself it correlates negatively though a and
    b had nothing to do with each other, for a stands on both sides. Hence the reference: the same
    correlation with each b dealt to another cell.

    Args:
        local: Accuracies alone, one per cell.
        ours: Accuracies of the shared training in the same cells.
        seed: Seed of the permutations.

    Returns:
        "n", the rank correlation "spearman", its mean under permutation "spearman_permuted", and
        "p_permuted", the share of permutations that correlate as negatively or more. "p" is
        scipy's, two-sided, against no correlation at all: the wrong null here, shown because the
        paper's is of that kind. All but n are None if there are fewer than three cells, or nothing
        varies.
    """
    a = np.asarray(local, float)
    b = np.asarray(ours, float)
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b - a) == 0:
        return {"n": len(a), **dict.fromkeys(("spearman", "p", "spearman_permuted", "p_permuted"))}
    rho, p = spearmanr(a, b - a)
    rng = np.random.default_rng(seed)
    dealt = rng.permuted(np.tile(b, (PERMUTATIONS, 1)), axis=1)
    chance = _correlations(rankdata(a), rankdata(dealt - a, axis=1))
    # Equal correlations differ in the last bits.
    as_low = np.count_nonzero(chance <= rho + 1e-12)
    return {
        "n": len(a),
        "spearman": float(rho),
        "p": float(p),
        "spearman_permuted": float(np.mean(chance)),
        "p_permuted": (1 + as_low) / (1 + PERMUTATIONS),
    }


def _correlations(ranks: np.ndarray, each: np.ndarray) -> np.ndarray:
    """Returns Pearson's correlation of `ranks` [n] with every row of [m, n]; 0 if a row is constant."""
    x = ranks - ranks.mean()
    y = each - each.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.sum(x**2) * np.sum(y**2, axis=1))
    return np.divide(y @ x, spread, out=np.zeros(len(y)), where=spread > 0)
