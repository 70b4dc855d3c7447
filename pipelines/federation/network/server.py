"""Leads a run between machines: the server holds exported sets at most, and starts from public values."""

import time
from collections.abc import Mapping, Sized

from pipelines import paths
from pipelines.config import Params, looks_at_images
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.federation.algorithms import base
from pipelines.federation.core import rounds
from pipelines.federation.core.messages import Bounds, Engine, run_bounds
from pipelines.federation.core.task import Task
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.inprocess import federate
from pipelines.federation.noisy_run import NoisyRun
from pipelines.federation.run_spec import RunSpec


def lead(
    params: Params, run: RunSpec, clients: list[str], engine: Engine, sets: Mapping[str, Images]
) -> rounds.History:
    """Runs all rounds.

    Args:
        params: The server's own parameters.
        run: The run.
        clients: The names of the clients that take part.
        engine: Carries the messages.
        sets: {client: its exported set}, of the clients that handed it in; else empty.

    Returns:
        The models, curves and cost of all rounds.

    Raises:
        UserError: The run looks at public images, and this server has none.
    """
    settings = run.settings(params)
    algorithm = base.load(run.method)
    began = time.perf_counter()
    first = base.first_state(algorithm, _task(params, run, clients, sets), settings)
    return rounds.run(
        first,
        algorithm.server_step,
        engine,
        rounds=settings.rounds,
        name=run.method,
        last_alone=run.noisy,
        seconds_before=time.perf_counter() - began,
    )


def lead_alone(params: Params, run: RunSpec, sets: Mapping[str, Images]) -> rounds.History:
    """Runs all rounds at the server, on the sets that clients handed in.

    Args:
        params: The server's own parameters.
        run: The run, whose algorithm `at_server` says so.
        sets: {client: its exported set}.
    """
    return federate(run.method, run.task(params, sets), run.settings(params))


def _task(
    params: Params, run: RunSpec, clients: list[str], sets: Mapping[str, Images]
) -> Task | NoisyTask:
    """Returns a task with the sets, or with a public size, equal for all, in place of each of them."""
    sizes: dict[str, Sized] = dict.fromkeys(
        sorted(clients), range(params.profiles[run.dataset].images)
    )
    if not run.noisy:
        return run.task(params, sets or sizes)
    noisy = NoisyRun(params, run.dataset, run.method)
    return noisy.server_task(sizes, _public_images(noisy))


def _public_images(noisy: NoisyRun) -> Images | None:
    """Returns the server's public images, or None if it has none and the run needs none."""
    path = paths.prepared(noisy.dataset) / "public.npz"
    if path.exists():
        images = noisy.public_images()
        if len(images):
            return images
    field = looks_at_images(noisy.settings)
    if field:
        raise UserError(
            f"{noisy.method!r} with this {field} looks at public images, and the server has no "
            f"{path}."
        )
    return None


def bounds(params: Params, run: RunSpec) -> Bounds:
    """Returns the range of each scalar that a client of a run sends in each round.

    The settings of both sides give the ranges. A client's weight in the mean is `images`, and
    FedNova divides by `steps`: the server knows both numbers. For SDA-FL it knows their ranges. A
    client trains there on its own set and on the part of the pool that its model is sure of.
    """
    algorithm = base.load(run.method)
    images = params.profiles[run.dataset].images
    pool = images * len(params.clients) if base.shares_sets(algorithm) else 0
    return run_bounds(algorithm.TELLS, run.settings(params), (images, images + pool))


def shares_sets(run: RunSpec) -> bool:
    """Returns whether every client must hold all clients' exported sets before the first round."""
    return base.shares_sets(base.load(run.method))


def is_led_alone(params: Params, run: RunSpec) -> bool:
    """Returns whether the server runs all rounds by itself, on the sets that it gathered."""
    return base.at_server(base.load(run.method), run.settings(params))
