"""Trains the models that the clients of a draw are handed (`client_draws`)."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.client_draws import DELTA, ClientDraw
from pipelines import methods
from pipelines.config.data import Client
from pipelines.datasets.labelled_images import Images
from pipelines.federation import noisy_training
from pipelines.federation.inprocess import federate
from pipelines.federation.noisy_run import NoisyRun
from pipelines.privacy import accounting
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import Noise
from pipelines.synthesis import warm_start
from pipelines.training.tensors import State, state_of

NOISY = ("dpsgd_warm", "dpsgd_head")


def trained(clients: ClientDraw, start: str) -> State:
    """Returns the weights that clients are handed: untrained, or of a federated method."""
    if start == "random":
        return state_of(clients.build())
    if start in NOISY:
        return noisy(clients, start)
    settings = clients.params.training(clients.dataset, methods.block(start))
    return federate(start, clients.task, settings).models[-1]


def noisy(clients: ClientDraw, method: str, share: float = 1.0) -> State:
    """Trains a model with noise on the federated clients' private records, within their epsilons.

    Args:
        clients: the draw.
        method: the noisy method.
        share: of each client's mu squared, which the method may spend.
    """
    budgets = {}
    for client, epsilon in clients.regime.budgets.items():
        budgets[client] = Client(epsilon=share_of(epsilon, share))
    privacy = clients.params.privacy.model_copy(update={"delta": DELTA, "noise": "os_entropy"})
    changes = {"clients": budgets, "privacy": privacy, "seed": clients.seed}
    params = clients.params.model_copy(update=changes)
    start = warm_start.joint_start(params, clients.dataset, method)
    run = NoisyRun(params, clients.dataset, method, start)
    task = run.client_task(clients.records)
    first = partial(_first, run, start, clients.records, task.sources)
    with TemporaryDirectory() as folder:
        noisy_training.train(run.algorithm, task, run.settings, first, Path(folder))
        model, _ = noisy_training.read(Path(folder))
    return model


def share_of(epsilon: float, share: float) -> float:
    """Returns the epsilon of a share of a budget's mu squared."""
    if share == 1:
        return epsilon
    return accounting.gdp_epsilon(mu=Budget(epsilon, DELTA, share).mu, delta=DELTA)


def _first(
    run: NoisyRun,
    start: warm_start.JointStart | None,
    records: dict[str, Images],
    sources: dict[str, Noise],
) -> tuple[State, int]:
    """Returns the weights before the first round, and the bytes of images sent for them."""
    model = run.build()
    return start.weights(model, records, sources) if start else (state_of(model), 0)
