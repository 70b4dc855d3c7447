"""The server's side of a run between machines: it holds no client's set, and starts from what is public."""

from pipelines import paths
from pipelines.config import NEEDING_NO_IMAGES, Params
from pipelines.datasets import containers
from pipelines.errors import UserError
from pipelines.federation import methods, rounds
from pipelines.federation.dp import federated, own
from pipelines.federation.dp.public import Public
from pipelines.federation.messages import Engine
from pipelines.federation.runs import Run
from pipelines.federation.task import algorithm
from pipelines.rules import Block
from pipelines.training.tensors import state_of


def lead(params: Params, run: Run, clients: list[str], engine: Engine) -> rounds.History:
    """All rounds of a run.

    Raises:
        UserError: the run looks at public images, and this server has none.
    """
    settings = run.settings(params)
    if run.noisy:
        module, build = federated.family(settings), own.network(params, run.dataset, settings)
        first = module.start(state_of(build()), settings, _public(params, run, settings), len(clients))
        step = module.step
    else:
        sizes = dict.fromkeys(sorted(clients), range(params.profiles[run.dataset].images))  # public: one for all
        module = algorithm(methods.module(run.method))
        first, step = module.server(run.task(params, sizes), settings), module.server_step
    return rounds.run(first, step, engine, rounds=settings.rounds, name=run.method, last_alone=run.noisy)


def shares_sets(run: Run) -> bool:
    """Whether every client must hold all clients' exported sets before the first round."""
    return not run.noisy and hasattr(algorithm(methods.module(run.method)), "shared")


def _public(params: Params, run: Run, settings: Block) -> Public | None:
    path = paths.prepared(run.dataset) / "public.npz"
    if path.exists() and len(images := containers.load(path)):
        return Public(own.network(params, run.dataset, settings)(), images)
    for field, plain in NEEDING_NO_IMAGES.items():
        if getattr(settings, field, plain[0]) not in plain:
            raise UserError(f"{run.method!r} with this {field} looks at public images, and the server has no {path}.")
    return None
