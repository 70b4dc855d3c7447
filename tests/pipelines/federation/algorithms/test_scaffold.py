import numpy as np

from pipelines.config.training import Scaffold as Settings
from pipelines.federation.algorithms import fedavg, scaffold
from pipelines.federation.core import control_variates
from pipelines.federation.core.messages import Reply
from pipelines.federation.inprocess import federate


def test_with_zero_variates_a_client_s_first_round_is_fedavg_s(task, sgd_settings, update):
    given = task()
    server = scaffold.server(given, sgd_settings(Settings))
    settings = sgd_settings(Settings, batch=3)
    reply = update(scaffold, given, settings, sent=server.broadcast)
    plain = update(fedavg, given, sgd_settings(batch=3))
    for name, array in plain.arrays.items():
        assert np.array_equal(reply.arrays[name], array)


def test_after_one_full_batch_step_the_variate_is_the_gradient(
    task, sgd_settings, update, gradient
):
    """Option II: c_client - c + (w - w_client) / (K rate), here with all variates 0."""
    given, settings = task(sizes=(10, 5)), sgd_settings(Settings)
    server = scaffold.server(given, settings)
    state = scaffold.client(given, "a", settings)
    reply = update(scaffold, given, settings, sent=server.broadcast, state=state)
    memory = state.memory
    for name, found in gradient(given, "a", given.start()).items():
        np.testing.assert_allclose(memory[name], found, atol=1e-12)
        np.testing.assert_allclose(reply.arrays[control_variates.CONTROL + name], found, atol=1e-12)


def test_after_several_steps_the_variate_is_the_mean_of_their_gradients(task, sgd_settings, update):
    """K = 3 of plain SGD: what they moved the weights by, over K times the rate."""
    given, settings = task(sizes=(30, 5)), sgd_settings(Settings)
    server, start = scaffold.server(given, settings), given.start()
    state = scaffold.client(given, "a", settings)
    reply = update(scaffold, given, settings, sent=server.broadcast, state=state)
    memory = state.memory
    assert reply.scalars["steps"] == 3
    for name, array in start.items():
        np.testing.assert_allclose(
            memory[name], (array - reply.arrays[name]) / (3 * 0.5), atol=1e-12
        )


def test_a_step_goes_along_the_gradient_less_the_client_s_variate_plus_the_server_s(
    task, sgd_settings, update, gradient
):
    given, settings = task(sizes=(10, 5)), sgd_settings(Settings)
    start = given.start()
    rng = np.random.default_rng(0)
    control, own = (
        {name: rng.normal(size=array.shape) for name, array in start.items()} for _ in range(2)
    )
    server = scaffold.ScaffoldServer(start, control, 2)
    state = scaffold.client(given, "a", settings)
    state.restore(own)
    reply = update(scaffold, given, settings, sent=server.broadcast, state=state)
    memory = state.memory
    for name, found in gradient(given, "a", start).items():
        np.testing.assert_allclose(
            reply.arrays[name], start[name] - 0.5 * (found - own[name] + control[name])
        )
        np.testing.assert_allclose(memory[name], found, atol=1e-12)  # K = 1: the gradient again
        np.testing.assert_allclose(
            reply.arrays[control_variates.CONTROL + name], memory[name] - own[name], atol=1e-12
        )


def test_the_server_moves_its_variate_by_the_mean_change_over_all_clients(replies):
    """Two of four clients answer: c moves by half of their mean change; weights go by size."""
    given = [
        Reply(
            r.client,
            r.payload.__class__(
                {**r.payload.arrays, "control.w": np.array([change])}, r.payload.scalars
            ),
        )
        for r, change in zip(replies(a=(0.0, {"images": 30}), b=(4.0, {"images": 10})), (1.0, 3.0))
    ]
    after = scaffold.server_step(
        scaffold.ScaffoldServer({"w": np.zeros(1)}, {"w": np.array([10.0])}, 4), given
    )
    assert after.weights["w"] == 1.0 and after.control["w"] == 11.0 and after.clients == 4


def test_a_client_remembers_its_variate_from_round_to_round(task, sgd_settings, gradient):
    """By hand, two rounds of two clients with one full-batch step each: with K = 1 round 2's correction is the mean
    gradient of round 1 less the client's own."""
    given, settings = task(sizes=(10, 10)), sgd_settings(Settings, rounds=2)
    start = given.start()
    history = federate("scaffold", given, settings)
    from_hand = _two_rounds(given, start, gradient)
    for name in start:
        np.testing.assert_allclose(history.models[2][name], from_hand[name], atol=1e-12)


def _two_rounds(given, start, gradient):
    first = {client: gradient(given, client, start) for client in "ab"}
    mean = {name: (first["a"][name] + first["b"][name]) / 2 for name in start}
    middle = {name: start[name] - 0.5 * mean[name] for name in start}
    second = {client: gradient(given, client, middle) for client in "ab"}
    return {
        name: middle[name]
        - 0.5 * sum(second[client][name] - first[client][name] + mean[name] for client in "ab") / 2
        for name in start
    }
