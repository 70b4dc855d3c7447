"""A whole run of federated DP-SGD over clients in this process, into the ledger's store."""

from collections.abc import Callable
from pathlib import Path

from torch import nn

from pipelines.datasets.containers import Images
from pipelines.federation import outcome, rounds
from pipelines.federation.dp import dpsgd, server
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.public import Public
from pipelines.federation.engines.inprocess import InProcess
from pipelines.files import write_csv, write_json
from pipelines.privacy.noise import Noise
from pipelines.training.tensors import state_of

# beside the models in the store: a later run makes nothing to tell of
COST, LOG, SPENT = "cost.json", "log.csv", "spent.json"


def train(
    data: dict[str, Images],
    accounts: dict[str, Account],
    sources: dict[str, Noise],
    build: Callable[[], nn.Module],
    public: Images,
    folder: Path,
) -> None:
    """Fills `folder`: the global model of each round, its cost, what every round told, what each client spent.

    All of it is post-processing of noisy steps, or of them and `public`, the server's images, which may be none.
    """
    settings = next(iter(accounts.values())).settings
    clients = {
        client: dpsgd.Client(build(), own, accounts[client], sources[client].torch_generator("cpu"))
        for client, own in data.items()
    }
    engine = InProcess({client: its.update for client, its in clients.items()})
    start = server.start(state_of(build()), settings, Public(build(), public) if len(public) else None)
    history = rounds.run(start, server.step, engine, rounds=settings.rounds, name="DP-SGD")
    write_json(folder / COST, history.cost)
    write_csv(folder / LOG, history.curves)
    write_json(folder / SPENT, {client: its.spent() for client, its in accounts.items()})
    outcome.save_models(folder / "rounds.safetensors", history.models)
