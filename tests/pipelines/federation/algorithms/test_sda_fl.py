import numpy as np
import torch

from pipelines.config.training import SdaFl
from pipelines.federation.algorithms import fedavg, sda_fl
from pipelines.federation.core.messages import Payload
from pipelines.federation.inprocess import federate


def sure_of_one(task):
    """Returns weights that name class 1 for every image, at any confidence."""
    start = task.start()
    return {"1.weight": np.zeros_like(start["1.weight"]), "1.bias": np.array([0.0, 50.0, 0.0])}


def test_the_pool_is_every_client_s_set_in_client_order(task):
    given = task()
    assert torch.equal(given.pool, torch.cat([given.local("a").images, given.local("b").images]))


def test_a_client_trains_on_its_own_labels_and_the_pool_s_pseudo_labels(task, sgd_settings):
    """The oracle is one full-batch step by hand: the mean gradient over own records and the pool
    under class 1.
    """
    given, settings = task(sizes=(10, 5)), sgd_settings(SdaFl, batch=100, confidence=0.9)
    start, local = sure_of_one(given), given.local("a")
    client = sda_fl.client(given, "a", settings)
    reply = sda_fl.client_update(Payload(start, {"round": 1}), client, settings)
    model = given.build()
    model.load_state_dict({name: torch.as_tensor(array) for name, array in start.items()})
    labels = torch.cat([local.labels, torch.ones(15, dtype=torch.int64)])
    loss = torch.nn.functional.cross_entropy(model(torch.cat([local.images, given.pool])), labels)
    for (name, array), found in zip(
        start.items(), torch.autograd.grad(loss, list(model.parameters()))
    ):
        np.testing.assert_allclose(reply.arrays[name], array - 0.5 * found.numpy(), atol=1e-12)
    assert reply.scalars["pseudo_labelled"] == 1.0


def test_images_the_model_is_not_sure_of_stay_out(task, sgd_settings, update):
    """At the fresh weights nothing is sure, so a client trains on its own set alone, as in FedAvg."""
    given = task()
    settings = sgd_settings(SdaFl, batch=3, confidence=0.999)
    reply = update(sda_fl, given, settings)
    plain = update(fedavg, given, sgd_settings(batch=3))
    assert reply.scalars["pseudo_labelled"] == 0.0
    for name, array in plain.arrays.items():
        assert np.array_equal(reply.arrays[name], array)


def test_the_pool_s_images_are_in_the_bill(task, sgd_settings):
    given = task()
    with_pool = federate("sda_fl", given, sgd_settings(SdaFl, confidence=0.5)).cost
    without = federate("fedavg", given, sgd_settings()).cost
    assert with_pool["bytes_up"] - without["bytes_up"] == 40 * 9
    assert with_pool["bytes_down"] - without["bytes_down"] == 2 * 40 * 9


def test_a_round_s_pool_is_labelled_once_and_the_next_round_s_anew(task, sgd_settings, monkeypatch):
    labelled = []
    logits = sda_fl.logits
    monkeypatch.setattr(sda_fl, "logits", lambda *given: labelled.append(1) or logits(*given))
    federate("sda_fl", task(sizes=(30, 10, 20)), sgd_settings(SdaFl, rounds=3, confidence=0.5))
    assert len(labelled) == 3
