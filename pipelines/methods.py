"""Names the methods beside PPPFL, what each trains on and how it reports. No torch here."""

# nothing is sent
AT_HOME = ("local", "random_init")
# Upper bounds: what the clients of these send reveals private records.
ON_REAL_DATA = ("fedavg_real", "pppfl_real")
# Each client trains a model on its own set, and whoever holds all sets chooses one.
AT_ONE_PLACE = ("single",)
# The module in `federation/algorithms` of a method that has none of its own name.
MODULES = {
    "fedmeta": "pppfl",
    "pppfl_paper": "pppfl",
    "fedavg_real": "fedavg",
    "pppfl_real": "pppfl",
    "dpsgd_warm": "dpsgd",
    "adap": "dpsgd",
    "agn": "dpsgd",
    "ali": "dpsgd",
}


def module(algorithm: str) -> str:
    """Returns the module in `algorithms/` that runs an algorithm.

    It is the algorithm's own, or another's under this one's settings.
    """
    return MODULES.get(algorithm, algorithm)


def exchanges_messages(algorithm: str) -> bool:
    """Returns whether a server and its clients exchange messages: in rounds, or sets beforehand.

    Only such algorithms run over a network, and only on synthetic sets.
    """
    return algorithm not in (*AT_HOME, *AT_ONE_PLACE, *ON_REAL_DATA)


def of_one_model(baselines: list[str]) -> list[str]:
    """Returns the methods that share one model, trained on synthetic sets: PPPFL's is the first.

    Such a model can be handed out, and each client can fine-tune it by itself.

    >>> of_one_model(["local", "single", "pooled", "fedavg_real"])
    ['pppfl', 'pooled']

    Args:
        baselines: The baselines that the parameters list.
    """
    return ["pppfl", *filter(exchanges_messages, baselines)]


def block(algorithm: str) -> str:
    """Returns the block of params.yaml with an algorithm's settings.

    PPPFL's is `meta`; every other's has the algorithm's name.
    """
    return "meta" if algorithm == "pppfl" else algorithm


def reported(algorithm: str, generators: list[str]) -> list[str]:
    """Returns the names under which an algorithm reports its results.

    They are METHOD, or METHOD/GENERATOR for each generator if it trains on synthetic sets. `single`
    trains each client's model once and reports it twice.

    >>> reported("single", ["datalens"])
    ['own_synthetic/datalens', 'best_single/datalens']
    """
    names = ("own_synthetic", "best_single") if algorithm == "single" else (algorithm,)
    if algorithm in (*AT_HOME, *ON_REAL_DATA):
        return list(names)
    return [f"{name}/{generator}" for generator in generators for name in names]
