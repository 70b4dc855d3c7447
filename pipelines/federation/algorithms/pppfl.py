"""PPPFL: MAML across clients' synthetic sets, steadied by a moving average and cosine cycles.

Per round, each client adapts the global model on its support set and replies with the query gradient at (second
order: through) the adapted weights (paper Alg. 1-2). The server averages the gradients with client weights (eq. 4,
whose printed denominator lost its exponential: the intended softmax of epsilon / rho is used), steps, and smooths:
theta_t = zeta theta_new + (1 - zeta) theta_{t-1}. With `ema` and `cosine` off and uniform weights this is FedMeta.

Three additions to the paper have a switch each. `warm_start` begins from a model that is trained on all exported sets.
`few_labels` draws tasks that look like a client with few labels. `handed_out_weight` adds the loss of the model before
any inner step (the first term of MAML++'s multi-step loss), so that it is good as it is handed out.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import learn2learn as l2l
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from pipelines.config.training import Meta
from pipelines.federation.core import few_label_tasks
from pipelines.federation.core.gathered import trained_on_all
from pipelines.federation.core.local_sgd import Local
from pipelines.federation.core.messages import (
    FRACTION,
    LOSS,
    Payload,
    Reply,
    ServerState,
    weighted_mean,
)
from pipelines.federation.core.task import Task
from pipelines.training.tensors import State, with_state

TELLS = {"query_loss": LOSS, "query_accuracy": FRACTION}


@dataclass(frozen=True)
class MetaServer(ServerState):
    """Holds what PPPFL's server keeps between rounds.

    Attributes:
        settings: those of the run.
        client_weights: {client: its weight in the mean}, which sum to 1.
        round: outer steps done.
        optimiser: torch's own state of the outer optimiser.
    """

    settings: Meta
    client_weights: dict[str, float]
    round: int = 0
    optimiser: dict[str, Any] = field(default_factory=dict)


def at_server(settings: Meta) -> bool:
    """Returns whether the server runs all rounds alone, on the sets that it has gathered."""
    return settings.where == "server"


def gathers_sets(settings: Meta) -> bool:
    """Returns whether the server holds all exported sets before the first round."""
    return at_server(settings) or settings.warm_start is not None


def warm_start(task: Task, settings: Meta) -> State | None:
    """Returns weights that are trained on all exported sets; None without a warm start."""
    return trained_on_all(task, settings.warm_start) if settings.warm_start else None


def server(task: Task, settings: Meta) -> MetaServer:
    """Returns the first model and the clients' weights."""
    sizes = {client: len(images) for client, images in task.data.items()}
    return MetaServer(task.start(), settings, client_weights(settings, task.epsilons, sizes))


def client(task: Task, name: str, settings: Meta) -> Local:
    """Returns a client's set beside its model. It remembers nothing from round to round."""
    return task.local(name)


def client_update(payload: Payload, client: Local, settings: Meta) -> Payload:
    """Replies with the gradient of the query loss after `inner_steps` on the support set.

    Second order goes through the inner steps (learn2learn's MAML); paper Algorithms 1 and 2. With
    `handed_out_weight` the loss before the inner steps is added, on a batch of the whole set.
    """
    model = with_state(client.model, payload.arrays)
    stream = client.stream(payload.scalars["round"])
    draws = _task(client, settings, stream)
    maml = l2l.algorithms.MAML(
        model, lr=settings.inner_learning_rate, first_order=settings.order == "first"
    )
    learner = maml.clone()
    for _ in range(settings.inner_steps):
        images, labels = draws.support()
        learner.adapt(F.cross_entropy(learner(images), labels))
    images, labels = draws.query()
    logits = learner(images)
    query_loss = F.cross_entropy(logits, labels)
    loss = query_loss
    if settings.handed_out_weight:
        images_of_all, labels_of_all = _alike(client, settings.batch, stream)
        handed_out = F.cross_entropy(model(images_of_all), labels_of_all)
        loss = loss + settings.handed_out_weight * handed_out
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    arrays = {
        name: gradient.cpu().numpy()
        for (name, _), gradient in zip(model.named_parameters(), gradients)
    }
    accuracy = (logits.argmax(1) == labels).float().mean().item()
    return Payload(arrays, {"query_loss": query_loss.item(), "query_accuracy": accuracy})


def server_step(state: MetaServer, replies: list[Reply]) -> MetaServer:
    """Takes one outer step on the weighted mean of the meta-gradients, then the moving average."""
    settings = state.settings
    shares = [state.client_weights[reply.client] for reply in replies]
    # those whose infinite epsilon takes all are lost: the others count alike
    if not any(shares):
        shares = [1.0] * len(replies)
    gradient = weighted_mean(replies, shares)
    stepped, optimiser = _outer_step(state, gradient)
    zeta = settings.zeta if settings.ema else 1.0
    weights = {name: zeta * stepped[name] + (1 - zeta) * state.weights[name] for name in stepped}
    return replace(state, weights=weights, round=state.round + 1, optimiser=optimiser)


def outer_learning_rate(settings: Meta, round: int) -> float:
    """Returns the outer learning rate of a round, counted from 1.

    beta(t) = beta / 2 (cos(pi s / L) + 1), s = (t - 1) mod L, L = ceil(T / M) with `cosine`; else
    beta.
    """
    if not settings.cosine:
        return settings.outer_learning_rate
    length = math.ceil(settings.rounds / settings.cycles)
    return (
        settings.outer_learning_rate / 2 * (math.cos(math.pi * ((round - 1) % length) / length) + 1)
    )


def client_weights(
    settings: Meta, epsilons: dict[str, float], sizes: dict[str, int]
) -> dict[str, float]:
    """Returns the clients' weights, which sum to 1.

    `epsilon` is the softmax of epsilon / rho (eq. 4). An infinite epsilon takes all, in the limit,
    shared among those that are infinite.

    Args:
        settings: `weights` says which weights, and `rho` their temperature.
        epsilons: what each client's set was made with; public.
        sizes: the numbers of images of the synthetic sets; public.
    """
    clients = sorted(epsilons)
    if settings.weights == "uniform":
        scores = np.ones(len(clients))
    elif settings.weights == "size_of_set":
        scores = np.array([float(sizes[client]) for client in clients])
    else:
        logits = np.array([epsilons[client] for client in clients]) / settings.rho
        top = logits.max()
        scores = np.isinf(logits).astype(float) if math.isinf(top) else np.exp(logits - top)
    return dict(zip(clients, (scores / scores.sum()).tolist()))


def support_and_query(local: Local, fraction: float) -> tuple[Local, Local]:
    """Splits a client's set, the same way in every round. `fraction` of it is the query set.

    Each part has a record, where there are two.
    """
    rows = torch.randperm(len(local), generator=local.stream(0))
    cut = max(1, min(round(len(local) * fraction), len(local) - 1))
    return local.subset(rows[cut:]), local.subset(rows[:cut])


class _Task(NamedTuple):
    """Holds how the images of one round's task are drawn."""

    support: Callable[[], tuple[torch.Tensor, torch.Tensor]]
    query: Callable[[], tuple[torch.Tensor, torch.Tensor]]


def _task(client: Local, settings: Meta, stream: torch.Generator) -> _Task:
    """Returns a round's task: new batches for each step, or one few-label set for all of them."""
    support, query = support_and_query(client, settings.query_fraction)
    if not settings.few_labels:
        return _Task(
            partial(_batch, support, settings.batch, stream),
            partial(_batch, query, settings.batch, stream),
        )
    classes = int(client.labels.max()) + 1
    shares = few_label_tasks.class_shares(classes, settings.few_labels.concentration, stream)
    count = few_label_tasks.support_size(settings.few_labels, stream)
    few = few_label_tasks.by_shares(support, shares, count, stream)
    return _Task(
        lambda: few, partial(few_label_tasks.by_shares, query, shares, settings.batch, stream)
    )


def _alike(client: Local, count: int, stream: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns images of the whole set, with all of its classes alike."""
    classes = int(client.labels.max()) + 1
    return few_label_tasks.by_shares(client, torch.ones(classes), count, stream)


def _batch(local: Local, count: int, stream: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    return local.batch(torch.randperm(len(local), generator=stream)[:count], stream)


def _outer_step(state: MetaServer, gradient: State) -> tuple[State, dict[str, Any]]:
    """Steps by torch's Adam or SGD, as a function of weights, gradient and optimiser state."""
    parameters = {
        name: nn.Parameter(torch.from_numpy(array.copy())) for name, array in state.weights.items()
    }
    kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[state.settings.outer_optimiser]
    optimiser = kind(parameters.values(), lr=1.0)
    if state.optimiser:
        # torch would step on the old state's tensors
        optimiser.load_state_dict(copy.deepcopy(state.optimiser))
    optimiser.param_groups[0]["lr"] = outer_learning_rate(state.settings, state.round + 1)
    for name, parameter in parameters.items():
        parameter.grad = torch.from_numpy(np.asarray(gradient[name]))
    optimiser.step()
    stepped = {name: parameter.detach().numpy().copy() for name, parameter in parameters.items()}
    return stepped, optimiser.state_dict()
