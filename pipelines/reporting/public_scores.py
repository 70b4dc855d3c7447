"""Chooses the scores that DVC may show: a dozen figures of a published data set, and its rounds.

DVC puts what dvc.yaml names as metrics and plots into the Git commit of each experiment. So nothing
of a user's own images is here, not even the names of methods. A published data set's scores are
nobody's secret.

Quantities: exact functions of the test images of a published data set. They are not accounted, and
they say nothing of a user's records.
"""

from collections.abc import Iterable, Mapping

from pipelines.config.data import Profile

# few columns, for `dvc exp show` has one per figure; a method with generators stands for its first
# generator that is not known to make noise
SHOWN = ("local", "pooled", "fedavg", "pppfl", "dpsgd_head")
ROUND = "round"
COLUMNS = (ROUND, *SHOWN)


def metrics(summary: dict, profile: Profile) -> dict[str, float]:
    """Returns the figures of SHOWN, and the largest epsilon of a release.

    Args:
        summary: What the report says of the data set.
        profile: Its profile.

    Returns:
        {METHOD_own: mean accuracy over the clients' own test parts, METHOD_everybody: the same
        models on the global test set, without class shares, "largest_epsilon"}. Empty for a user's
        own images.
    """
    if not profile.is_public:
        return {}
    figures = {}
    largest = []
    for method, name in columns(summary["methods"]).items():
        found = summary["methods"][name]
        elsewhere = list(found["clients_elsewhere"].values())
        figures[f"{method}_own"] = found["mean_accuracy"]
        figures[f"{method}_everybody"] = sum(elsewhere) / len(elsewhere)
        largest.append(found["epsilon_max"])
    return figures | {"largest_epsilon": max(largest, default=0.0)}


def rounds(rows: Iterable[Mapping[str, str]], methods: Mapping[str, str]) -> list[dict[str, str]]:
    """Returns the rows of a table of rounds with the columns of SHOWN alone.

    Args:
        rows: Of the report, one per round: the round and a value per method with its generator.
        methods: {method: the column that stands for it}, from `columns`.

    Returns:
        A row per round in which one of them has a value. Empty if no method has rounds.
    """
    shown = []
    for row in rows:
        values = {method: row.get(name, "") for method, name in methods.items()}
        if any(values.values()):
            shown.append({**dict.fromkeys(COLUMNS, ""), ROUND: row[ROUND], **values})
    return shown


def columns(methods: Mapping[str, dict]) -> dict[str, str]:
    """Returns {method of SHOWN: its name in the summary}, without those that did not run.

    Args:
        methods: The methods of a summary.

    Example:
        >>> noise = {"weak": True}
        >>> columns({"pppfl/datalens": noise, "pppfl/dp_moments": {"weak": False}})
        {'pppfl': 'pppfl/dp_moments'}
    """
    chosen = {}
    for method in SHOWN:
        named = [name for name in methods if name.partition("/")[0] == method]
        # of equals the first one stays
        named.sort(key=lambda name: methods[name]["weak"])
        if named:
            chosen[method] = named[0]
    return chosen
