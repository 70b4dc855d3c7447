"""A whole run of a noisy federation over clients in this process, into the ledger's store."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

from torch import nn

from pipelines.config.dp import Nbafl
from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import dpsgd, nbafl
from pipelines.federation.core import checkpoints, rounds
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.public import Public
from pipelines.federation.home import results
from pipelines.files import write_csv, write_json
from pipelines.privacy.noise import Noise
from pipelines.training.tensors import State

# beside the models in the store: a later run makes nothing to tell of
COST, LOG, SPENT = "cost.json", "log.csv", "spent.json"


def family(settings: Block) -> ModuleType:
    """Of an algorithm: VERSION, account, Client, start, step, and the engine of clients in one process."""
    return nbafl if isinstance(settings, Nbafl) else dpsgd


def train(
    data: dict[str, Images],
    accounts: dict[str, Account],
    sources: dict[str, Noise],
    build: Callable[[], nn.Module],
    first: Callable[[], tuple[State, int]],
    public: Images,
    folder: Path,
    unfinished: Path | None = None,
) -> None:
    """Fills `folder`: the last global model, its cost, what every round told, what each client spent.

    All of it is post-processing of noisy steps, or of them and `public`, the server's images, which may be none.
    first: makes the weights before the first round, free of the records or paid for ahead of it (`Account.before`), and
    says how many bytes of images clients sent for it.
    unfinished: where a run that was killed goes on from: private, and of this very release alone, so that what was
    drawn before is not drawn again.
    """
    journal = checkpoints.Journal(unfinished, stamp=checkpoints.stamp() if unfinished else "")
    weights, sent, seconds, places = journal.once(partial(_timed, first, sources))
    for client, place in places.items():
        sources[client].move_to(place)
    settings = next(iter(accounts.values())).settings
    module = family(settings)
    clients = {
        client: module.Client(build(), own, accounts[client], sources[client])
        for client, own in data.items()
    }
    start = module.start(
        weights, settings, Public(build(), public) if len(public) else None, len(clients)
    )
    name = module.__name__.rpartition(".")[2]
    history = rounds.run(
        start,
        module.step,
        module.engine(clients),
        rounds=settings.rounds,
        name=name,
        last_alone=True,
        journal=journal,
    )
    cost = history.cost
    cost |= {"bytes_up": cost["bytes_up"] + sent, "seconds": cost["seconds"] + seconds}
    keep(folder, history, cost, {client: its.spent() for client, its in accounts.items()})


def _timed(
    first: Callable[[], tuple[State, int]], sources: dict[str, Noise]
) -> tuple[State, int, float, dict]:
    """What `first` makes, in how many seconds, and where streams of test noise are after it."""
    began = time.perf_counter()
    weights, sent = first()
    return (
        weights,
        sent,
        time.perf_counter() - began,
        {client: its.position for client, its in sources.items()},
    )


def keep(folder: Path, history: rounds.History, cost: dict, spent: dict[str, dict]) -> None:
    """Fills the store, whoever carried the run."""
    write_json(folder / COST, cost)
    write_csv(folder / LOG, history.curves)
    write_json(folder / SPENT, spent)
    results.save_models(folder / "rounds.safetensors", history.models)
