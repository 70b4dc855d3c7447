"""One client's part of a joint noisy run, as its ledger enters it."""

import hashlib

from pipelines.blocks.data import Profile
from pipelines.privacy.ledger import Release
from pipelines.privacy.statement import Statement


def entry(
    algorithm: str,
    version: int,
    statement: Statement,
    cost: dict,
    *,
    data: list[str],
    client: str,
    profile: Profile,
    seed: int,
    start: dict | None = None,
) -> Release:
    """All planned steps. `data` names everyone's part; `start`, the release that the run starts from."""
    network = {"shape": profile.shape, "classes": profile.classes, "classifier": profile.classifier}
    budget = {"epsilon": statement.epsilon, "delta": statement.delta, "noise": statement.noise}
    return Release(
        mechanism=algorithm,
        version=version,
        parameters={**statement.details, **budget, **network, "client": client, "seed": seed, "start": start},
        data=hashlib.sha256("".join(data).encode()).hexdigest(),
        cost=cost if statement.guarantee == "formal" else {"kind": "none"},
        statement=statement.as_dict(),
    )
