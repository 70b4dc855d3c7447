"""The server's side of a run between machines: it holds no client's set, and starts from what is public."""

import math

from pipelines import methods, paths
from pipelines.config import Params, looks_at_images
from pipelines.config.dp import Nbafl
from pipelines.config.training import LocalSgd
from pipelines.config.values import Block
from pipelines.datasets import labelled_images
from pipelines.errors import UserError
from pipelines.federation import noisy_run
from pipelines.federation.core import rounds
from pipelines.federation.core.messages import Engine
from pipelines.federation.core.task import algorithm
from pipelines.federation.dp import own
from pipelines.federation.dp.clipping import RANGE
from pipelines.federation.dp.public import Public
from pipelines.federation.network.gate import TOLD, Bounds
from pipelines.federation.run_spec import Run
from pipelines.training.tensors import state_of


def lead(params: Params, run: Run, clients: list[str], engine: Engine) -> rounds.History:
    """All rounds of a run.

    Raises:
        UserError: the run looks at public images, and this server has none.
    """
    settings = run.settings(params)
    if run.noisy:
        module, build = noisy_run.family(settings), own.network(params, run.dataset, settings)
        first = module.start(
            state_of(build()), settings, _public(params, run, settings), len(clients)
        )
        step = module.step
    else:
        sizes = dict.fromkeys(
            sorted(clients), range(params.profiles[run.dataset].images)
        )  # public: one for all
        module = algorithm(methods.module(run.method))
        first, step = module.server(run.task(params, sizes), settings), module.server_step
    return rounds.run(
        first, step, engine, rounds=settings.rounds, name=run.method, last_alone=run.noisy
    )


def bounds(params: Params, run: Run) -> Bounds:
    """Returns what each client of a run may tell in each round, within what the settings of both sides allow.

    A client's weight in the mean is `images`, and FedNova divides by `steps`: the server knows both. Of SDA-FL it knows
    ranges, for a client trains on its own set and on as much of the pool as its model is sure of.
    """
    settings = run.settings(params)
    if run.noisy:
        return _of_noise(settings)
    if not isinstance(settings, LocalSgd):
        return _named("query_loss", "query_accuracy")
    least = params.profiles[run.dataset].images
    most = least * (1 + len(params.clients) * shares_sets(run))
    steps = [settings.local_epochs * math.ceil(images / settings.batch) for images in (least, most)]
    counts = {"images": (int, least, most), "steps": (int, *steps)}
    return {**_named("train_loss", *["pseudo_labelled"] * shares_sets(run)), **counts}


def _of_noise(settings: Block) -> Bounds:
    same = _named("epsilon_spent", "epsilon_by_pld", "signal_to_noise", "noise_multiplier")
    # auto_s has the norm 1, whatever the settings say
    same["clipping_norm"] = (float, 0.0, max(1.0, settings.clipping_norm) * RANGE)
    if isinstance(settings, Nbafl):
        return {**same, "steps": (int, 1, settings.rounds)}
    steps = settings.rounds * max(settings.local_steps, settings.most_local_steps)
    return {**same, "steps": (int, 1, steps), "left": (int, 0, steps)}


def _named(*names: str) -> Bounds:
    return {name: TOLD[name] for name in names}


def shares_sets(run: Run) -> bool:
    """Whether every client must hold all clients' exported sets before the first round."""
    return not run.noisy and hasattr(algorithm(methods.module(run.method)), "shared")


def _public(params: Params, run: Run, settings: Block) -> Public | None:
    path = paths.prepared(run.dataset) / "public.npz"
    if path.exists() and len(images := labelled_images.load(path)):
        return Public(own.network(params, run.dataset, settings)(), images)
    field = looks_at_images(settings)
    if field:
        raise UserError(
            f"{run.method!r} with this {field} looks at public images, and the server has no {path}."
        )
    return None
