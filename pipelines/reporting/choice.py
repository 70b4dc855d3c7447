"""Chooses the road that the page recommends, by one rule that the page prints.

A road is one way to learn together. At home the best road is found; with it stand those that show
no difference to it. Of these the one that is best on everybody's images is chosen.
"""

from pipelines.reporting import comparisons
from pipelines.reporting.findings import not_private

# Nothing is shared in these: a client needs nobody for them.
WITHOUT_OTHERS = ("local", "random_init", "own_synthetic")


def candidates(methods: dict[str, dict]) -> list[str]:
    """Returns the methods that may be recommended.

    Clients learn together in them, privately, and neither their models nor their images are known
    to be of no use.

    Args:
        methods: The methods of the summary.
    """
    names = []
    for name, entry in methods.items():
        alone = name.partition("/")[0] in WITHOUT_OTHERS
        useless = entry["collapsed"] or entry["weak"]
        if not (alone or useless or entry["upper_bound"] or not_private(entry)):
            names.append(name)
    return names


def of_run(methods: dict[str, dict], run: dict, seed: int) -> dict | None:
    """Returns the recommended road of a run, or None if no method may be recommended.

    Args:
        methods: The methods of the summary.
        run: What `collect.read` returned; its "correct" is read.
        seed: Seed of the run, from which the bootstrap's is derived.

    Returns:
        {"road", "equals": the other roads that show no difference to the best one at home,
        "candidates"}.
    """
    rivals = candidates(methods)
    if not rivals:
        return None
    best = max(rivals, key=lambda name: methods[name]["mean_accuracy"])
    level = []
    for name in rivals:
        compared = comparisons.paired(name, best, run, seed)
        if comparisons.verdict(compared) == 0:
            level.append(name)
    road = max(level, key=lambda name: methods[name]["mean_elsewhere"])
    equals = [name for name in level if name != road]
    return {"road": road, "equals": equals, "candidates": rivals}
