"""Leads a run between machines: the server holds no client's set, and starts from public values."""

from pipelines import paths
from pipelines.config import Params, looks_at_images
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.federation.algorithms import base
from pipelines.federation.core import rounds
from pipelines.federation.core.messages import Bounds, Engine, run_bounds
from pipelines.federation.core.task import Task
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.noisy_run import NoisyRun
from pipelines.federation.run_spec import RunSpec


def lead(params: Params, run: RunSpec, clients: list[str], engine: Engine) -> rounds.History:
    """Runs all rounds.

    Args:
        params: The server's own parameters.
        run: The run.
        clients: The names of the clients that take part.
        engine: Carries the messages.

    Returns:
        The models, curves and cost of all rounds.

    Raises:
        UserError: The run looks at public images, and this server has none.
    """
    settings = run.settings(params)
    algorithm = base.load(run.method)
    return rounds.run(
        algorithm.server(_task(params, run, clients), settings),
        algorithm.server_step,
        engine,
        rounds=settings.rounds,
        name=run.method,
        last_alone=run.noisy,
    )


def _task(params: Params, run: RunSpec, clients: list[str]) -> Task | NoisyTask:
    """Returns a task that holds a public size, equal for all, in place of each client's set."""
    sizes = dict.fromkeys(sorted(clients), range(params.profiles[run.dataset].images))
    if not run.noisy:
        return run.task(params, sizes)
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
