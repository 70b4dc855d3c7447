"""One client's part of a joint noisy run, as its ledger enters it."""

from pipelines import releases
from pipelines.config import Params
from pipelines.config.data import Profile
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.ledger import Identity, Release
from pipelines.privacy.statement import Statement


def entry(
    algorithm: str,
    version: int,
    identity: Identity,
    statement: Statement,
    cost: dict,
    *,
    data: list[str],
    client: str,
    profile: Profile,
    seed: int,
    start: dict | None = None,
) -> Release:
    """Returns what the client's ledger enters: all planned steps.

    Args:
        algorithm, version, identity: of the mechanism.
        statement, cost: of the client's account.
        data: facts of all clients that tell this run from another; one that changes makes another release.
        client: whose ledger it is.
        profile: of the data set, for what its network depends on.
        seed: of everything random but the noise.
        start: parameters of the release that the run starts from, or None.
    """
    network = {"shape": profile.shape, "classes": profile.classes, "classifier": profile.classifier}
    budget = {"epsilon": statement.epsilon, "delta": statement.delta, "noise": statement.noise}
    return Release(
        mechanism=algorithm,
        version=version,
        parameters={
            **statement.details,
            **budget,
            **network,
            "client": client,
            "seed": seed,
            "start": start,
        },
        data=releases.digest_of_all(data),
        cost=charged(cost, statement),
        statement=statement.as_dict(),
        identity=identity,
    )


def charged(cost: dict, statement: Statement) -> dict:
    """Returns an account's cost as a ledger enters it: without a guarantee nothing bounds it."""
    return cost if statement.guarantee == "formal" else {"kind": "none"}


def facts(params: Params, records: dict[str, Images], public: Images) -> list[str]:
    """Returns what tells this joint release from another.

    A reply depends on everyone's records and noise, by the model that was broadcast. If one of these
    facts changes, all clients release anew.

    Args:
        params: budgets and the engine.
        records: every client's private records.
        public: the server's images.
    """
    clients = [
        f"{client} {releases.digest(records[client])} {params.budget(client)}"
        for client in sorted(records)
    ]
    network = []
    if params.federation.engine != "inprocess":
        network.append(f"over a network, {params.federation.on_loss} on loss")
    return [*clients, releases.digest(public), *network]
