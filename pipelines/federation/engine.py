"""Which engine carries a stage's run: `federation.engine`. Both give the same weights."""

import importlib
from pathlib import Path

from pipelines.config import Params
from pipelines.datasets import exports
from pipelines.errors import UserError
from pipelines.federation.core.rounds import History, NetworkRun
from pipelines.federation.inprocess import federate
from pipelines.federation.run_spec import RunSpec


def on_synthetic(params: Params, run: RunSpec, unfinished: Path | None = None) -> History:
    """Runs a method on the clients' exported sets, by the engine of the parameters.

    Args:
        params: of the project.
        run: the method, data set and generator.
        unfinished: where a killed run in this process left what it had.

    Raises:
        UserError: a network's run failed.
    """
    if params.federation.engine == "inprocess":
        data = exports.images(
            run.dataset, list(params.clients), run.generator, params.profiles[run.dataset]
        )
        return federate(run.method, run.task(params, data), run.settings(params), unfinished)
    return networked(params, run).history


def networked(params: Params, run: RunSpec) -> NetworkRun:
    """Runs all rounds over NVFlare.

    Raises:
        UserError: NVFlare is not installed; or the run failed.
    """
    try:
        flare = importlib.import_module("pipelines.federation.network.flare.submit")
    except ModuleNotFoundError as error:
        raise UserError(
            f"federation.engine is 'nvflare', which needs the extra `flare`: {error}."
        ) from None
    return flare.run_over_network(params, run)
