"""Makes two small clients, a linear classifier in double precision, and one round of any algorithm
on them.
"""

import numpy as np
import pytest
import torch
from torch import nn

from pipelines.config.training import LocalSgd
from pipelines.datasets.labelled_images import Images
from pipelines.federation.core import local_sgd
from pipelines.federation.core.messages import Payload, Reply
from pipelines.federation.core.task import Task
from pipelines.training import pool
from pipelines.training.tensors import state_of, tensors


def made(count: int, seed: int) -> Images:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    pixels = rng.integers(0, 256, (count, 3, 3, 1)) // 2 + labels[:, None, None, None] * 40
    return Images(pixels.astype(np.uint8), labels, np.arange(count))


def linear() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(9, 3)).double()


@pytest.fixture
def images():
    return made


@pytest.fixture
def network():
    """Returns a factory of the same fresh network."""
    return linear


@pytest.fixture
def in_double(monkeypatch):
    """Makes records float64, so that equalities are sharp."""
    for module in (local_sgd, pool):
        monkeypatch.setattr(
            module, "tensors", lambda data, on: (tensors(data)[0].double(), tensors(data)[1])
        )


@pytest.fixture
def sgd_settings():
    """Returns a factory of settings of local SGD, or of a block that extends them."""
    base = {"rounds": 4, "local_epochs": 1, "batch": 10, "learning_rate": 0.5, "momentum": 0.0}
    return lambda kind=LocalSgd, **changes: kind.model_validate({**base, **changes})


@pytest.fixture
def task(in_double):
    """Returns a factory of tasks; `sizes` are the clients' numbers of records."""

    def make(sizes=(30, 10), seed=0, data=None) -> Task:
        if not data:
            data = {}
            for number, (name, size) in enumerate(zip("ab", sizes)):
                data[name] = made(size, number)
        return Task(
            data=data, build=linear, augmentation=None, epsilons=dict.fromkeys(data, 1.0), seed=seed
        )

    return make


@pytest.fixture
def update():
    """Returns one client's answer in round `number`, from the network's first weights or those `sent`."""

    def answer(
        module, task: Task, settings, client="a", number=1, sent=None, state=None
    ) -> Payload:
        start = Payload(sent or task.start(), {"round": number})
        state = state or module.client(task, client, settings)
        return module.client_update(start, state, settings)

    return answer


@pytest.fixture
def replies():
    """Returns {client: (w, scalars)} as replies with one weight."""

    def make(**values) -> list[Reply]:
        made_replies = []
        for name, (w, scalars) in values.items():
            made_replies.append(Reply(name, Payload({"w": np.array([w])}, scalars)))
        return made_replies

    return make


@pytest.fixture
def gradient():
    """Computes {name: d loss / d w} of the cross-entropy over all of a client's records, by
    autograd.
    """

    def compute(task: Task, client: str, weights):
        records = task.local(client)
        model = linear()
        model.load_state_dict({name: torch.as_tensor(array) for name, array in weights.items()})
        loss = nn.functional.cross_entropy(model(records.images), records.labels)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        return {name: part.numpy() for name, part in zip(state_of(model), gradients)}

    return compute
