import math
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pipelines.config.training import Meta
from pipelines.federation.algorithms import pppfl
from pipelines.federation.core.local_sgd import hold
from pipelines.federation.core.messages import Payload, Reply
from pipelines.federation.inprocess import federate
from pipelines.training.tensors import state_of

BASE = {
    "rounds": 30,
    "order": "second",
    "inner_learning_rate": 0.5,
    "inner_steps": 2,
    "outer_learning_rate": 0.1,
    "outer_optimiser": "sgd",
    "query_fraction": 0.3,
    "batch": 50,
    "weights": "uniform",
    "rho": 10.0,
    "ema": False,
    "zeta": 0.5,
    "cosine": False,
    "cycles": 1,
}


def meta(**changes):
    return Meta(**{**BASE, **changes})


def network():
    """Returns a smooth network, so that finite differences exist everywhere, in double precision,
    so that they are sharp.
    """
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(9, 4), nn.Tanh(), nn.Linear(4, 3)).double()


@pytest.fixture
def local(in_double, images):
    return hold(network(), images(70, 1), None, 0)


def meta_gradient(local, settings):
    payload = Payload(state_of(network()), {"round": 1})
    return pppfl.client_update(payload, local, settings).arrays


def adapted_query_loss(local, weights, settings):
    """Computes plain gradient steps on the support set by hand, then the query loss, without
    learn2learn.
    """
    (x, y), (x_query, y_query) = (
        (part.images, part.labels) for part in pppfl.support_and_query(local, 0.3)
    )
    model = network()
    names = [name for name, _ in model.named_parameters()]
    values = [torch.tensor(weights[name], requires_grad=True) for name in names]
    for _ in range(settings.inner_steps):
        loss = F.cross_entropy(torch.func.functional_call(model, dict(zip(names, values)), (x,)), y)
        gradients = torch.autograd.grad(loss, values)
        values = [
            (v - settings.inner_learning_rate * g).detach().requires_grad_()
            for v, g in zip(values, gradients)
        ]
    logits = torch.func.functional_call(model, dict(zip(names, values)), (x_query,))
    return F.cross_entropy(logits, y_query), dict(zip(names, values))


def test_second_order_meta_gradient_equals_finite_differences(local):
    settings = meta(order="second")
    gradient, weights = meta_gradient(local, settings), state_of(network())
    for name in weights:
        for index in list(np.ndindex(weights[name].shape))[:5]:
            sides = []
            for sign in (1, -1):
                moved = {key: array.copy() for key, array in weights.items()}
                moved[name][index] += sign * 1e-5
                sides.append(adapted_query_loss(local, moved, settings)[0].item())
            assert gradient[name][index] == pytest.approx(
                (sides[0] - sides[1]) / 2e-5, rel=1e-4, abs=1e-8
            )


def test_first_order_is_the_query_gradient_at_the_adapted_weights_and_differs_from_second(local):
    settings = meta(order="first")
    gradient = meta_gradient(local, settings)
    loss, adapted = adapted_query_loss(local, state_of(network()), settings)
    expected = torch.autograd.grad(loss, list(adapted.values()))
    for name, value in zip(adapted, expected):
        np.testing.assert_allclose(gradient[name], value.numpy(), atol=1e-10)
    second = meta_gradient(local, meta(order="second"))
    assert max(np.abs(second[name] - gradient[name]).max() for name in gradient) > 1e-3


def server(settings, **weights):
    return pppfl.MetaServer({"w": np.array([1.0], np.float32)}, settings, weights)


def replies(**gradients):
    return [
        Reply(client, Payload({"w": np.array([g], np.float32)})) for client, g in gradients.items()
    ]


def test_plain_outer_step_is_sgd_on_the_weighted_mean_gradient():
    after = pppfl.server_step(server(meta(), a=0.75, b=0.25), replies(a=1.0, b=-1.0))
    assert after.weights["w"] == pytest.approx(1.0 - 0.1 * 0.5)
    assert after.round == 1


def test_ema_mixes_the_new_and_the_old_weights():
    after = pppfl.server_step(server(meta(ema=True, zeta=0.3), a=1.0), replies(a=1.0))
    assert after.weights["w"] == pytest.approx(0.3 * 0.9 + 0.7 * 1.0)


def test_adam_carries_its_state_from_round_to_round():
    settings = meta(outer_optimiser="adam", outer_learning_rate=0.1)
    state, parameter = server(settings, a=1.0), nn.Parameter(torch.ones(1))
    optimiser = torch.optim.Adam([parameter], lr=0.1)
    for gradient in (1.0, -0.5, 2.0):
        state = pppfl.server_step(state, replies(a=gradient))
        parameter.grad = torch.tensor([gradient])
        optimiser.step()
    assert state.weights["w"] == pytest.approx(parameter.item(), abs=1e-7)


def test_server_step_leaves_its_input_alone():
    start = server(meta(outer_optimiser="adam"), a=1.0)
    later = pppfl.server_step(
        start, replies(a=1.0)
    )  # from here on the optimiser has a state to spoil
    for state in (start, later):
        before = state.weights["w"].copy()
        first, second = (pppfl.server_step(state, replies(a=1.0)) for _ in range(2))
        assert np.array_equal(state.weights["w"], before)
        assert np.array_equal(first.weights["w"], second.weights["w"])


def test_cosine_cycles_restart_at_the_full_rate_and_fall_within_each():
    settings = meta(cosine=True, cycles=3)
    rates = [pppfl.outer_learning_rate(settings, t) for t in range(1, 31)]
    assert rates[0] == rates[10] == rates[20] == 0.1
    assert rates[5] == pytest.approx(0.05)
    assert all(np.diff(rates[start : start + 10]).max() < 0 for start in (0, 10, 20))
    assert {pppfl.outer_learning_rate(meta(), t) for t in range(1, 31)} == {0.1}


def test_a_cycle_s_length_is_rounded_up():
    """Ten rounds in four cycles are cycles of three, three, three and one."""
    rates = [
        pppfl.outer_learning_rate(meta(rounds=10, cosine=True, cycles=4), t) for t in range(1, 11)
    ]
    assert [t for t, rate in enumerate(rates, 1) if rate == 0.1] == [1, 4, 7, 10]


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_each_outer_step_is_as_long_as_its_round_s_rate(optimiser):
    """A gradient of 1 each round: SGD, and Adam with it, moves the weight by the rate itself."""
    settings = meta(rounds=6, cosine=True, cycles=2, outer_optimiser=optimiser)
    state = server(settings, a=1.0)
    for number in range(1, 7):
        after = pppfl.server_step(state, replies(a=1.0))
        moved = (state.weights["w"] - after.weights["w"]).item()
        assert moved == pytest.approx(pppfl.outer_learning_rate(settings, number), abs=1e-6)
        state = after


def test_a_run_weighs_clients_by_what_their_sets_were_made_with(task, images):
    """The oracle computes one round of a whole run by hand.

    It uses the softmax of the task's own epsilons, and the clients' sizes.
    """
    data, epsilons = {"a": images(40, 1), "b": images(20, 2)}, {"a": 1.0, "b": 11.0}
    given = replace(task(data=data), epsilons=epsilons)
    for how, share in (("epsilon", 1 / (1 + math.e)), ("size_of_set", 2 / 3)):
        settings, sent = meta(rounds=1, weights=how), Payload(given.start(), {"round": 1})
        a, b = (pppfl.client_update(sent, given.local(c), settings).arrays for c in "ab")
        after = federate("pppfl", given, settings).models[1]
        for name, array in sent.arrays.items():
            np.testing.assert_allclose(
                after[name], array - 0.1 * (share * a[name] + (1 - share) * b[name]), atol=1e-6
            )


def test_epsilon_weights_are_the_softmax_of_epsilon_over_rho():
    weights = pppfl.client_weights(meta(weights="epsilon"), {"a": 1.0, "b": 10.0}, {})
    assert weights["b"] / weights["a"] == pytest.approx(math.exp(0.9))
    assert sum(weights.values()) == pytest.approx(1)


def test_where_those_that_take_all_are_lost_the_others_count_alike():
    after = pppfl.server_step(server(meta(), a=0.0, b=0.0, c=1.0), replies(a=1.0, b=3.0))
    assert after.weights["w"] == pytest.approx(1.0 - 0.1 * 2.0)


def test_infinite_epsilons_share_everything():
    weights = pppfl.client_weights(
        meta(weights="epsilon"), {"a": 1.0, "b": math.inf, "c": math.inf}, {}
    )
    assert weights == {"a": 0.0, "b": 0.5, "c": 0.5}


def test_uniform_and_size_weights():
    epsilons, sizes = {"a": 1.0, "b": 9.0}, {"a": 300, "b": 100}
    assert pppfl.client_weights(meta(), epsilons, sizes) == {"a": 0.5, "b": 0.5}
    assert pppfl.client_weights(meta(weights="size_of_set"), epsilons, sizes) == {
        "a": 0.75,
        "b": 0.25,
    }


@pytest.mark.parametrize("fraction", [1e-6, 0.999999])
def test_neither_support_nor_query_is_ever_empty(images, fraction):
    parts = pppfl.support_and_query(hold(network(), images(4, 1), None, 0), fraction)
    assert sorted(map(len, parts)) == [1, 3]


def test_support_and_query_are_disjoint_complete_and_the_same_every_round(local):
    support, query = pppfl.support_and_query(local, 0.3)
    assert len(query) == 21

    def lines(*parts):
        return sorted(map(tuple, torch.cat([part.images.flatten(1) for part in parts]).tolist()))

    assert lines(support, query) == lines(local)
    again = pppfl.support_and_query(local, 0.3)
    assert torch.equal(again[1].images, query.images)


def test_with_everything_off_it_is_plain_maml_with_a_mean_gradient(task, images):
    """FedMeta: weights -= rate times the mean meta-gradient, over two rounds of two clients."""
    given, settings = task(data={"a": images(40, 1), "b": images(40, 2)}), meta(rounds=2)
    history, weights = federate("pppfl", given, settings), given.start()
    for number in (1, 2):
        sent = Payload(weights, {"round": number})
        found = [pppfl.client_update(sent, given.local(c), settings).arrays for c in "ab"]
        weights = {
            name: array - 0.1 * (found[0][name] + found[1][name]) / 2
            for name, array in weights.items()
        }
        for name in weights:
            np.testing.assert_allclose(history.models[number][name], weights[name], atol=1e-6)


def test_thirty_of_the_paper_s_steps_move_no_weight_by_more_than_a_hundredth(task):
    """Spec 2.6: Adam's step is about its rate, so 30 x 3e-4 bounds the whole of the paper's outer loop."""
    settings = meta(outer_optimiser="adam", outer_learning_rate=3e-4, cosine=True)
    models = federate("pppfl", task(), settings).models
    moved = max(np.abs(models[-1][name] - models[0][name]).max() for name in models[0])
    assert 1e-4 < moved < 0.01


WARM = {"steps": 20, "batch": 10, "learning_rate": 0.05}
FEW = {"least": 4, "most": 8, "concentration": 0.5}


def test_the_loss_as_handed_out_adds_the_plain_gradient_of_a_balanced_batch(local):
    """Without inner movement the query gradient is known; what is left is the added term's."""
    payload = Payload(state_of(network()), {"round": 1})
    still = {"inner_learning_rate": 1e-12, "order": "first"}
    bare = pppfl.client_update(payload, local, meta(**still)).arrays
    with_it = pppfl.client_update(payload, local, meta(**still, handed_out_weight=2.0)).arrays
    # the same draws: two support batches and a query, then the balanced batch
    stream = local.stream(1)
    support, query = pppfl.support_and_query(local, 0.3)
    for part in (support, support, query):
        pppfl._batch(part, 50, stream)
    images_of_all, labels = pppfl._alike(local, 50, stream)
    model = network()
    loss = F.cross_entropy(model(images_of_all), labels)
    added = torch.autograd.grad(loss, list(model.parameters()))
    for name, gradient in zip(bare, added):
        np.testing.assert_allclose(with_it[name] - bare[name], 2 * gradient.numpy(), atol=1e-9)


def test_the_images_of_the_loss_as_handed_out_are_of_all_classes_alike(in_double, images):
    data = images(300, 1)
    rare = data[np.flatnonzero((data.labels < 2) | (np.arange(300) < 30))]
    _, labels = pppfl._alike(hold(network(), rare, None, 0), 3000, torch.Generator().manual_seed(0))
    assert np.bincount(labels).min() > 900


def test_a_few_label_task_adapts_on_one_small_set_in_every_step(local, monkeypatch):
    seen = []
    real = pppfl.few_label_tasks.by_shares

    def spy(part, shares, count, stream):
        seen.append((len(part), count, shares))
        return real(part, shares, count, stream)

    monkeypatch.setattr(pppfl.few_label_tasks, "by_shares", spy)
    meta_gradient(local, meta(few_labels=FEW, inner_steps=5))
    (support, few, shares), (query, many, same) = seen
    assert (support, query) == (49, 21) and 4 <= few <= 8 and many == 50
    assert torch.equal(shares, same)


def test_a_run_begins_from_the_warm_start_and_without_one_from_the_fresh_network(task):
    given = task()
    warm = federate("pppfl", given, meta(rounds=1, warm_start=WARM)).models[0]
    expected = pppfl.warm_start(given, meta(warm_start=WARM))
    fresh = federate("pppfl", given, meta(rounds=1)).models[0]
    for name, start in given.start().items():
        assert np.array_equal(warm[name], expected[name])
        assert np.array_equal(fresh[name], start)
        assert not np.array_equal(warm[name], start)


def test_the_time_of_a_warm_start_is_part_of_the_cost(task, monkeypatch):
    real = pppfl.warm_start

    def slow(given, settings):
        time.sleep(0.5)
        return real(given, settings)

    monkeypatch.setattr(pppfl, "warm_start", slow)
    run = federate("pppfl", task(), meta(rounds=1, warm_start=WARM))
    assert run.cost["seconds"] >= 0.5


def test_at_the_server_each_set_is_sent_once_and_the_model_once_back(task):
    given = task(sizes=(30, 10))
    history = federate("pppfl", given, meta(rounds=3, where="server"))
    assert len(history.models) == 4 and history.cost["rounds"] == 3
    assert history.cost["bytes_up"] == 40 * 9
    model = sum(array.nbytes for array in given.start().values())
    assert history.cost["bytes_down"] == 2 * model


def test_a_server_learns_from_the_union_whoever_has_which_image(task, images):
    """Dealt otherwise, the same images give the same bytes; at the clients they do not."""
    whole = images(40, 3)
    dealt = task(data={"a": whole[:30], "b": whole[30:]})
    other = task(data={"a": whole[:5], "b": whole[5:]})
    for where, same in (("server", True), ("clients", False)):
        one, two = (
            federate("pppfl", given, meta(rounds=2, where=where)).models[-1]
            for given in (dealt, other)
        )
        assert all(np.array_equal(one[name], two[name]) for name in one) == same
