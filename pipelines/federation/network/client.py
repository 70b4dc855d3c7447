"""A client's side of a run between machines: its own records, parameters and ledger, behind the gate.

What the server says is a run's name and the rounds' messages; all else follows from the client's own params.yaml, so a
server cannot ask for less noise, more steps or other records. A synthetic method reads the client's exported set alone;
a noisy one its train part, within an account that its ledger has entered before the first answer. Noisy training, and
sets whose card has no formal guarantee, are for a stage's own clients on one machine.
"""

import os
import secrets

import numpy as np

from pipelines import methods, releases
from pipelines.config import Params
from pipelines.datasets import exports, shards
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.federation import noisy_run
from pipelines.federation.core.task import algorithm, extra, handler
from pipelines.federation.dp import own
from pipelines.federation.network.gate import Gate, Refused, check_set, plain
from pipelines.federation.noisy_release import entry
from pipelines.federation.run_spec import Run
from pipelines.training.tensors import state_of

LOCAL = "FEDLENS_LOCAL_MODE"  # of the environment: set by a stage that starts its own clients, and by nobody else


def gate(params: Params, run: Run, client: str, pool: dict[str, dict]) -> Gate:
    """Ready for the first round. Of a noisy run the whole budget is spent in the ledger by then, and is spent again
    by every run that begins anew: what a dead one had sent is out.

    pool: every client's exported set, {"images", "labels"}, where the algorithm has all clients share them; else empty.

    Raises:
        UserError: these parameters, this ledger or the set's card do not allow it, or there is no set or record. Then
            nothing was spent.
        Refused: the pool is none.
    """
    return _noisy(params, run, client) if run.noisy else _synthetic(params, run, client, pool)


def exported(run: Run, client: str) -> dict[str, Images]:
    """{client: its exported set}, with the guarantee that lets it, or weights made from it, go to others.

    Raises:
        UserError: there is none, or its card has no formal guarantee and others than this machine's would see it.
    """
    if (
        LOCAL not in os.environ
        and exports.privacy(run.dataset, [client], run.generator)["guarantee"] != "formal"
    ):
        raise UserError(
            f"The card of {client}/{run.generator} has no formal guarantee: the set is served to nobody else."
        )
    return exports.images(run.dataset, [client], run.generator)


def _synthetic(params: Params, run: Run, client: str, pool: dict[str, dict]) -> Gate:
    task, settings = run.task(params, exported(run, client)), run.settings(params)
    module = algorithm(methods.module(run.method))
    held = extra(module, run.task(params, _sets(params, run, pool)))
    first = module.server(task, settings)
    return Gate(handler(module, task.local(client), settings, held), first.sent, settings.rounds)


def _sets(params: Params, run: Run, pool: dict[str, dict]) -> dict[str, Images]:
    profile, found = params.profiles[run.dataset], {}
    for client, content in pool.items():
        try:
            check_set(content, (profile.images, *profile.shape), profile.classes)
        except Refused as refusal:
            raise Refused(f"{plain(repr(client))}: {refusal}") from None
        if client not in params.clients:
            raise Refused(f"{plain(repr(client))} is no client of this run")
        labels = content["labels"]
        found[client] = Images(content["images"], labels, np.full(len(labels), -1, np.int64))
    return found


def _noisy(params: Params, run: Run, client: str) -> Gate:
    settings = run.settings(params)
    if LOCAL not in os.environ:
        raise UserError(
            "Noisy training on private records is served in federation.mode 'local' alone."
        )
    if settings.warm_start:
        raise UserError(
            f"{run.method!r} starts from images that clients release together: in one process only."
        )
    module, build = noisy_run.family(settings), own.network(params, run.dataset, settings)
    account, source = (
        own.account(params, client, settings),
        own.source(params, run.dataset, run.method, client),
    )
    records = shards.read(run.dataset, client, "train")
    served = module.Client(build(), records, account, source)
    first = module.start(
        state_of(build()), settings
    )  # no public images: what is sent has the same shapes
    release = entry(
        run.method,
        module.VERSION,
        module.IDENTITY,
        account.statement(source),
        account.cost,
        data=[releases.digest(records), secrets.token_hex(16)],  # never one that was made before
        client=client,
        profile=params.profiles[run.dataset],
        seed=params.seed,
    )
    releases.enter_as_made(releases.ledger_of(params, run.dataset, client), release)
    return Gate(served, first.sent, settings.rounds, account.spent)
