"""Says what a method is worth to each client, less training alone, and how sure that is.

At home the difference to `local` is paired, image by image of the client's own test part. On
everybody's images, the global test set, only accuracies are kept: there is a difference, and no
interval over images. Over six clients or more there is an interval over clients.
"""

import numpy as np

from pipelines import seeds
from pipelines.evaluation import intervals
from pipelines.reporting.comparisons import FEWEST, differing
from pipelines.reporting.gains import ALONE


def at_home(method: str, run: dict, seed: int) -> dict[str, dict]:
    """Returns each client's own gain over training alone, from its own test images and no other's.

    Args:
        method: Name of the method.
        run: What `collect.read` returned; its "correct" is read.
        seed: Seed of the run, from which the bootstrap's is derived.

    Returns:
        {client: {"value", "low", "high", "differing": number of its images that differ}}. It is
        empty for `local`, and where `local` did not run.
    """
    if method == ALONE or ALONE not in run["correct"]:
        return {}
    gains = {}
    for client, right in run["correct"][method].items():
        ours = {client: right}
        alone = {client: run["correct"][ALONE][client]}
        interval = intervals.of_difference(
            ours, alone, seed=seeds.derive(seed, "bootstrap", method, ALONE, client)
        )
        gains[client] = {**interval._asdict(), "differing": differing(ours, alone)}
    return gains


def elsewhere(method: str, methods: dict[str, dict], seed: int) -> dict | None:
    """Returns what a method is worth to the clients on everybody's images.

    Args:
        method: Name of the method.
        methods: The methods of the summary; their "clients_elsewhere" is read.
        seed: Seed of the run, from which the bootstrap's is derived.

    Returns:
        {"value": the mean over clients, "low", "high": its interval over clients or None,
        "clients": {client: gain}}. None for `local`, and where `local` did not run.
    """
    if method == ALONE or ALONE not in methods:
        return None
    ours = methods[method]["clients_elsewhere"]
    alone = methods[ALONE]["clients_elsewhere"]
    gains = {client: ours[client] - alone[client] for client in ours}
    if len(gains) < FEWEST:
        mean = float(np.mean(list(gains.values())))
        return {"value": mean, "low": None, "high": None, "clients": gains}
    cells = {(0, client): gain for client, gain in gains.items()}
    interval = intervals.over_cells(
        cells, seed=seeds.derive(seed, "bootstrap", "elsewhere", method)
    )
    return {**interval._asdict(), "clients": gains}
