"""The methods beside PPPFL by name: what each trains on, and under which names it reports. No torch here."""

AT_HOME = ("local", "random_init")  # nothing is sent
ON_REAL_DATA = (
    "fedavg_real",
    "pppfl_real",
)  # upper bounds: what their clients send tells of private records
AT_ONE_PLACE = (
    "single",
    "pooled",
)  # no rounds: whoever holds all synthetic sets, or each client alone
MODULES = {
    "fedmeta": "pppfl",
    "pppfl_paper": "pppfl",
    "fedavg_real": "fedavg",
    "pppfl_real": "pppfl",
}


def module(algorithm: str) -> str:
    """The module in `algorithms/` that an algorithm runs: its own, or another's under its own settings."""
    return MODULES.get(algorithm, algorithm)


def has_rounds(algorithm: str) -> bool:
    """Whether a server and its clients talk: over a network only these do, on synthetic sets alone."""
    return algorithm not in (*AT_HOME, *AT_ONE_PLACE, *ON_REAL_DATA)


def block(algorithm: str) -> str:
    """The block of params.yaml with an algorithm's settings: PPPFL's is `meta`, every other's has its own name."""
    return "meta" if algorithm == "pppfl" else algorithm


def reported(algorithm: str, generators: list[str]) -> list[str]:
    """METHOD or METHOD/GENERATOR: once per generator where it trains on synthetic sets. `single` trains each client's
    model once and reports it twice."""
    names = ("own_synthetic", "best_single") if algorithm == "single" else (algorithm,)
    if algorithm in (*AT_HOME, *ON_REAL_DATA):
        return list(names)
    return [f"{name}/{generator}" for generator in generators for name in names]
