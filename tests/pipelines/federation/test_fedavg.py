import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from pipelines.blocks.training import Fedavg
from pipelines.datasets.containers import Images
from pipelines.federation.algorithms import fedavg
from pipelines.federation.messages import Payload, Reply
from pipelines.training.tensors import state_of, tensors


def images(count, seed=0):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (count, 4, 4, 1)).astype(np.uint8)
    return Images(pixels, rng.integers(0, 3, count), np.arange(count))


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 3))


def test_one_full_batch_step_is_gradient_descent():
    data, model = images(10), network()
    start = state_of(model)
    settings = Fedavg(rounds=1, local_epochs=1, batch=10, learning_rate=0.5)
    reply = fedavg.client_update(Payload(start, {"round": 1}), model=network(1), data=data, settings=settings, seed=3)
    x, y = tensors(data)
    gradients = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
    for (name, _), gradient in zip(model.named_parameters(), gradients):
        np.testing.assert_allclose(reply.arrays[name], start[name] - 0.5 * gradient.numpy(), atol=1e-6)


def test_the_server_weights_by_size_of_set():
    replies = [
        Reply("a", Payload({"w": np.array([0.0])}, {"images": 30})),
        Reply("b", Payload({"w": np.array([4.0])}, {"images": 10})),
    ]
    assert fedavg.server_step(fedavg.Server({}), replies).weights["w"] == 1.0


def test_batches_follow_the_seed_and_the_round():
    settings = Fedavg(rounds=1, local_epochs=1, batch=3, learning_rate=0.5)
    start = state_of(network())

    def weights(round, seed):
        payload = Payload(start, {"round": round})
        update = fedavg.client_update(payload, model=network(), data=images(20), settings=settings, seed=seed)
        return update.arrays["1.weight"]

    assert np.array_equal(weights(1, 5), weights(1, 5))
    assert not np.array_equal(weights(1, 5), weights(2, 5))
    assert not np.array_equal(weights(1, 5), weights(1, 6))
