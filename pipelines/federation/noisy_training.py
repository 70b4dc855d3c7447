"""The rounds of a noisy run in this process, and the files that its store holds."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from pipelines.config.values import Block
from pipelines.federation.algorithms.noisy_base import NoisyAlgorithm
from pipelines.federation.core import checkpoints, rounds
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.home import results
from pipelines.federation.inprocess import in_process
from pipelines.files import read_json, write_csv, write_json
from pipelines.privacy.noise import Noise
from pipelines.training.tensors import State
from pipelines.words import by_client

# the files of the store, beside which a later run has nothing to make
MODELS = "rounds.safetensors"
COST = "cost.json"
LOG = "log.csv"
SPENT = "spent.json"


def announce(accounts: Mapping[str, Account]) -> None:
    """Prints each client's noise and steps, as planned."""
    plans = {}
    for client, account in accounts.items():
        steps = "no step, so that it takes no part,"
        if account.affordable:
            steps = f"{account.affordable} steps"
        noise_multiplier = f"noise multiplier {account.first:.3f}"
        plans[client] = f"{noise_multiplier}, {steps} within epsilon {account.epsilon:g}"
    for line in by_client(plans):
        print(line)


def train(
    algorithm: NoisyAlgorithm,
    task: NoisyTask,
    settings: Block,
    first: Callable[[], tuple[State, int]],
    folder: Path,
    unfinished: Path | None = None,
) -> None:
    """Fills a store with the last global model, its cost, every round's log, what each client spent.

    All of it is post-processing of noisy steps, or of them and public images.

    Args:
        algorithm: the one to run.
        task: every client's records, account and noise.
        settings: those of the run.
        first: makes the weights before the first round, free of the records or paid for ahead of it
            (`Account.before`), and says how many bytes of images clients sent for it.
        folder: the store.
        unfinished: where a killed run goes on from. It is private, and of this very release alone, so
            that what was drawn before is not drawn again.
    """
    stamp = checkpoints.stamp() if unfinished else ""
    saved = checkpoints.Checkpoints(unfinished, stamp=stamp)
    weights, sent, seconds, positions = saved.once(partial(_timed, first, task.sources))
    for client, position in positions.items():
        task.sources[client].move_to(position)
    task = replace(task, weights=weights)
    history = rounds.run(
        algorithm.server(task, settings),
        algorithm.server_step,
        in_process(algorithm, task, settings),
        rounds=settings.rounds,
        name=algorithm.__name__.rpartition(".")[2],
        last_alone=True,
        checkpoints=saved,
    )
    cost = dict(history.cost)
    cost["bytes_up"] += sent
    cost["seconds"] += seconds
    spent = {client: account.spent() for client, account in task.accounts.items()}
    store(folder, history, cost, spent)


def _timed(
    first: Callable[[], tuple[State, int]], sources: Mapping[str, Noise]
) -> tuple[State, int, float, dict]:
    """Returns what `first` makes, its seconds, and the positions of test noise after it."""
    began = time.perf_counter()
    weights, sent = first()
    seconds = time.perf_counter() - began
    positions = {client: source.position for client, source in sources.items()}
    return weights, sent, seconds, positions


def store(folder: Path, history: rounds.History, cost: dict, spent: dict[str, dict]) -> None:
    """Fills the store of a run, whoever carried it.

    Args:
        folder: the store.
        history: of the rounds; its last model is kept.
        cost: the run's, with what came before its first round.
        spent: {client: what its account came to}.
    """
    write_json(folder / COST, cost)
    write_csv(folder / LOG, history.curves)
    write_json(folder / SPENT, spent)
    results.save_models(folder / MODELS, history.models)


def read(folder: Path) -> tuple[State, dict]:
    """Returns the last global model of a store, and the run's cost."""
    return results.load_models(folder / MODELS)[-1], read_json(folder / COST)
