"""Makes a page for one client, which its owner may keep. It holds what that client may see, alone.

The page may hold:

* Of the client: its scores at home and elsewhere by each method, the gains that they come to, its
  budget, what its releases cost, do not cover and bought, its ledger's total and cap, its number of
  records, its sample grids, and the warnings on its own sets.
* Of the federation: the names of the data set, its classes, the methods and the generators, which
  methods train another network than `local`, how often a method exchanges a model, and whether its
  shared model collapsed, which synthetic or public images alone decide.

Methods without a guarantee for every client are left out, upper bounds among them: any score of such
a model tells of other clients' records.

It holds nothing of any other client: no name, score, count, budget or sample, and no figure over
clients, for a mean with the own part taken off tells of the others. No method is recommended: that
choice looks at everybody's scores. Whoever changes `facts` changes this list.
"""

from pipelines.reporting import dot_plot
from pipelines.reporting.comparisons import verdict
from pipelines.reporting.dot_plot import Figure
from pipelines.reporting.environment import environment
from pipelines.reporting.findings import not_private
from pipelines.reporting.views import class_names

# Scores of a release by the model of all clients.
OF_SHARED_MODEL = ("accuracy_before", "accuracy_after")
# Of a client's part of the summary. What is not named here stays out.
OWN_FIELDS = (
    "epsilon",
    "delta",
    "records",
    "generators",
    "dp_baselines",
    "total",
    "not_covered",
    "ledger",
    "cap",
)


def facts(client: str, summary: dict, run: dict) -> dict:
    """Returns all that a client's page is made from.

    Args:
        client: Name of the client.
        summary: What `summary.build` returned.
        run: What `collect.read` returned.

    Returns:
        {"client", "dataset", "other_network": methods on another network than `local`'s,
        "class_names", "entry": its part of the summary, "methods": its figures by method, best gain
        first, "grids": {GENERATOR: PNG bytes}}.
    """
    names = [name for name, entry in summary["methods"].items() if _may_show(entry)]
    methods = [_method(name, client, summary, run) for name in names]
    entry = {field: summary["clients"][client][field] for field in OWN_FIELDS}
    entry["generators"] = _releases(entry["generators"], names)
    return {
        "client": client,
        "dataset": summary["dataset"],
        "other_network": [name for name in summary["other_network"] if name in names],
        "class_names": class_names({client: run["cards"][client]}),
        "entry": entry,
        "methods": sorted(methods, key=_rank),
        "grids": run["grids"][client],
    }


def render(content: dict) -> str:
    """Returns a client's page as text. Equal facts give equal bytes.

    Args:
        content: What `facts` returned.
    """
    compared = [method for method in content["methods"] if method["gain"] and not method["apart"]]
    at_home = []
    elsewhere = []
    for method in compared:
        gain = method["gain"]
        at_home.append(Figure(gain["value"], gain["low"], gain["high"]))
        elsewhere.append(Figure(method["gain_elsewhere"]))
    plot = {
        "names": [method["name"] for method in compared],
        "home": dot_plot.column(at_home),
        "elsewhere": dot_plot.column(elsewhere),
    }
    template = environment().get_template("client.html.j2")
    return template.render(**content, plot=plot, headline=headline(compared))


def headline(compared: list[dict]) -> str:
    """Returns in a sentence what this client gains at home, from its own scores.

    Args:
        compared: Its figures by the methods that can be compared.
    """
    gaining = [method for method in compared if verdict(method["gain"]) == 1]
    losing = [method for method in compared if verdict(method["gain"]) == -1]
    if not compared:
        return "This run cannot say what the client gains."
    if not gaining and not losing:
        return (
            f"At home no difference to training alone is shown, by any of {len(compared)} methods."
        )
    return (
        f"At home a gain over training alone is shown by {len(gaining)} of {len(compared)} methods, "
        f"a loss by {len(losing)}."
    )


def _may_show(entry: dict) -> bool:
    """Returns whether a client may see its own scores by a method."""
    return not (entry["upper_bound"] or not_private(entry))


def _releases(generators: dict[str, dict], shown: list[str]) -> dict[str, dict]:
    """Returns the releases, without scores of a shared model that the page does not show.

    Args:
        generators: The client's releases by generator.
        shown: The methods that the page shows.
    """
    releases = {}
    for generator, release in generators.items():
        hidden = {} if f"pppfl/{generator}" in shown else dict.fromkeys(OF_SHARED_MODEL)
        releases[generator] = release | hidden
    return releases


def _rank(method: dict) -> tuple:
    """Returns what sorts the methods: the largest gain first, what cannot be compared last."""
    gain = method["gain"]
    return method["apart"], gain is None, -gain["value"] if gain else 0.0, method["name"]


def _method(name: str, client: str, summary: dict, run: dict) -> dict:
    """Returns one client's figures by one method."""
    entry = summary["methods"][name]
    scored = run["results"][name]["clients"][client]
    generator = name.partition("/")[2]
    weak = bool(generator and run["cards"][client][generator]["weak"])
    after = entry["clients_elsewhere"][client]
    gain = entry["gains"].get(client)
    alone = summary["methods"]["local"]["clients_elsewhere"][client] if gain else None
    return {
        "name": name,
        "before": scored["before"]["accuracy"],
        "after": scored["after"]["accuracy"],
        "elsewhere": after,
        "gain": gain,
        "gain_elsewhere": after - alone if gain else None,
        "rounds": entry["rounds"],
        "collapsed": bool(entry["collapsed"]),
        "weak": weak,
        "apart": weak or bool(entry["collapsed"]),
    }
