"""Which engine carries a stage's run: `federation.engine`. Both give the same weights."""

import importlib
from pathlib import Path
from types import ModuleType

from pipelines.config import Params
from pipelines.datasets import exports
from pipelines.errors import UserError
from pipelines.federation.algorithms import base
from pipelines.federation.core.rounds import History, NetworkRun
from pipelines.federation.inprocess import federate
from pipelines.federation.run_spec import RunSpec


def on_synthetic(params: Params, run: RunSpec, unfinished: Path | None = None) -> History:
    """Runs a method on the clients' exported sets, by the engine of the parameters.

    Arguments and errors are those of `with_sets`.
    """
    return with_sets(params, run, unfinished).history


def with_sets(params: Params, run: RunSpec, unfinished: Path | None = None) -> NetworkRun:
    """Runs a method on the clients' exported sets, and returns the sets with the history.

    The sets are those that the server of a network gathered, or all in one process.

    Args:
        params: of the project.
        run: the method, data set and generator.
        unfinished: where a killed run in this process left what it had.

    Raises:
        UserError: a network's run failed.
    """
    if params.federation.engine == "inprocess":
        handed_in = exports.handed_out(
            run.dataset, list(params.clients), run.generator, params.profiles[run.dataset]
        )
        sets = {client: export.images for client, export in handed_in.items()}
        history = federate(run.method, run.task(params, sets), run.settings(params), unfinished)
        return NetworkRun(history, {}, handed_in)
    return networked(params, run)


def gathers_sets(params: Params, run: RunSpec) -> bool:
    """Returns whether a run's sets come to one place: of this process, or of a network's server."""
    return params.federation.engine == "inprocess" or server_gathers_sets(params, run)


def server_gathers_sets(params: Params, run: RunSpec) -> bool:
    """Returns whether a network's server gathers all exported sets before the first round.

    The algorithm needs them there, or the settings ask for them.
    """
    needed = base.gathers_sets(base.load(run.method), run.settings(params))
    return needed or run.gathers_pool(params)


def networked(params: Params, run: RunSpec) -> NetworkRun:
    """Runs all rounds over NVFlare.

    Raises:
        UserError: NVFlare is not installed; or the run failed.
    """
    return carrier().run_over_network(params, run)


def carrier() -> ModuleType:
    """Returns the module that submits jobs to NVFlare.

    Raises:
        UserError: NVFlare is not installed.
    """
    try:
        return importlib.import_module("pipelines.federation.network.flare.submit")
    except ModuleNotFoundError as error:
        raise UserError(
            f"federation.engine is 'nvflare', which needs the extra `flare`: {error}."
        ) from None
