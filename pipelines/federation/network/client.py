"""Prepares a client's side of a run between machines: its data and its ledger, behind a gate.

The server sends a run's name and the rounds' messages. All else follows from the client's own
params.yaml, so a server cannot ask for less noise, more steps or other records. A synthetic method
reads the client's exported set alone. A noisy one reads its train part, within an account that its
ledger has entered before the first answer. A method whose sums are floats is for a stage's own
clients on one machine (docs/privacy.md, pitfall 21). So are sums without noise, and sets whose card
has no formal guarantee.
"""

import math
import os
import secrets
from functools import partial

from pipelines import releases
from pipelines.config import Params
from pipelines.datasets import exports, shards
from pipelines.datasets.labelled_images import Images, without_ids
from pipelines.errors import UserError
from pipelines.federation.algorithms import base
from pipelines.federation.core.task import Task
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.network.gate import Gate, Refused, check_set, plain
from pipelines.federation.noisy_run import NoisyRun
from pipelines.federation.run_spec import RunSpec

# An environment variable. A stage that starts its own clients sets it, and nobody else.
LOCAL = "FEDLENS_LOCAL_MODE"


def gate(params: Params, run: RunSpec, client: str, pool: dict[str, dict]) -> Gate:
    """Makes a client ready for the first round.

    The ledger then has the whole budget of a noisy run as spent. Every run that begins anew spends
    it again, because the answers of a run that died cannot be taken back.

    Args:
        params: The client's own parameters.
        run: The run that the server named.
        client: The client's name.
        pool: {client: its exported set}, each {"images": uint8 [n, H, W, C], "labels": int64 [n]},
            if the algorithm has all clients share them; else empty.

    Returns:
        The gate that answers the rounds.

    Raises:
        UserError: These parameters, this ledger or the set's card do not allow it, or there is no
            set or record. Then nothing was spent.
        Refused: The pool is none of this run.
    """
    algorithm = base.load(run.method)
    settings = run.settings(params)
    task = _noisy(params, run, client) if run.noisy else _synthetic(params, run, client, pool)
    state = algorithm.client(task, client, settings)
    first = algorithm.server(task, settings)
    spent = dict
    if run.noisy:
        _enter(params, run, client, task)
        spent = task.accounts[client].spent
    update = partial(algorithm.client_update, client=state, settings=settings)
    return Gate(update, first.broadcast, settings.rounds, algorithm.TELLS, spent)


def exported(run: RunSpec, client: str) -> dict[str, Images]:
    """Returns {client: its exported set}.

    The guarantee of the set allows that others receive it, or weights made from it.

    Raises:
        UserError: There is no set. Or its card has no formal guarantee, and members on other
            machines would see it.
    """
    if LOCAL not in os.environ:
        privacy = exports.privacy(run.dataset, [client], run.generator)
        if privacy["guarantee"] != "formal":
            raise UserError(
                f"The card of {client}/{run.generator} has no formal guarantee: the set is served "
                "to nobody else."
            )
    return exports.images(run.dataset, [client], run.generator)


def _synthetic(params: Params, run: RunSpec, client: str, pool: dict[str, dict]) -> Task:
    return run.task(params, exported(run, client), _sets(params, run, pool))


def _sets(params: Params, run: RunSpec, pool: dict[str, dict]) -> dict[str, Images]:
    """Checks the sets of the pool and returns them.

    Raises:
        Refused: A set is none of this run, or belongs to no client of it.
    """
    profile = params.profiles[run.dataset]
    sets = {}
    for client, content in pool.items():
        try:
            check_set(content, (profile.images, *profile.shape), profile.classes)
        except Refused as refusal:
            raise Refused(f"{plain(repr(client))}: {refusal}") from None
        if client not in params.clients:
            raise Refused(f"{plain(repr(client))} is no client of this run")
        sets[client] = without_ids(content["images"], content["labels"])
    return sets


def _noisy(params: Params, run: RunSpec, client: str) -> NoisyTask:
    """Returns the task on the client's train part, with its account and noise."""
    noisy = NoisyRun(params, run.dataset, run.method)
    if LOCAL not in os.environ:
        _check_served(noisy, client)
    if noisy.settings.warm_start:
        raise UserError(
            f"{run.method!r} starts from images that clients release together: in one process only."
        )
    # a record that does not fit must fail here: later the server would learn that there is one
    records = shards.read(run.dataset, client, "train", params.profiles[run.dataset])
    return noisy.client_task({client: records})


def _check_served(noisy: NoisyRun, client: str) -> None:
    """Checks that a server on another machine may have what a noisy method releases.

    Raises:
        UserError: Its sums are floats, whose rounding such a server could read. Or its noise is for
            tests, or the client's epsilon is infinite, so that nothing is promised to the records.
    """
    if not getattr(noisy.algorithm, "SERVED_BETWEEN_MACHINES", False):
        raise UserError(
            f"{noisy.method!r} adds floats, which a server could read (docs/privacy.md, pitfall "
            "21): it is served in federation.mode 'local' alone."
        )
    if noisy.params.privacy.noise != "os_entropy":
        raise UserError(
            "Noise for tests promises nothing: what it is added to is served in federation.mode "
            "'local' alone."
        )
    epsilon, _ = noisy.params.budget(client)
    if not math.isfinite(epsilon):
        raise UserError(
            f"The epsilon of clients.{client} is infinite, which promises nothing: sums without "
            "noise are served in federation.mode 'local' alone."
        )


def _enter(params: Params, run: RunSpec, client: str, task: NoisyTask) -> None:
    """Enters the whole budget in the client's ledger, as a release that was never made before."""
    facts = [releases.digest(task.data[client]), secrets.token_hex(16)]
    release = NoisyRun(params, run.dataset, run.method).entry(client, task, facts)
    releases.enter_as_made(releases.ledger_of(params, run.dataset, client), release)
