"""Which engine carries a stage's run: `federation.engine`. Both give the same weights."""

import importlib
from pathlib import Path

from pipelines import methods
from pipelines.config import Params
from pipelines.datasets import exports
from pipelines.errors import UserError
from pipelines.federation.core.rounds import Carried, History
from pipelines.federation.core.task import federate
from pipelines.federation.run_spec import Run


def on_synthetic(params: Params, run: Run, unfinished: Path | None = None) -> History:
    """A run on the clients' exported sets, by the engine of the parameters; in this process it goes on where it was
    killed, from what lies in `unfinished`.

    Raises:
        UserError: a network's run failed.
    """
    if params.federation.engine == "inprocess":
        data = exports.images(
            run.dataset, list(params.clients), run.generator, params.profiles[run.dataset]
        )
        return federate(
            methods.module(run.method), run.task(params, data), run.settings(params), unfinished
        )
    return networked(params, run).history


def networked(params: Params, run: Run) -> Carried:
    """
    Raises:
        UserError: NVFlare is not installed; or the run failed.
    """
    try:
        flare = importlib.import_module("pipelines.federation.network.flare.submit")
    except ModuleNotFoundError as error:
        raise UserError(
            f"federation.engine is 'nvflare', which needs the extra `flare`: {error}."
        ) from None
    return flare.carried(params, run)
