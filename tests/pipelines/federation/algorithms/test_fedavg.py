import numpy as np

from pipelines.federation.algorithms import fedavg
from pipelines.federation.core.messages import ServerState


def test_one_full_batch_step_is_gradient_descent(task, sgd_settings, update, gradient):
    given = task(sizes=(10, 5))
    reply, start = update(fedavg, given, sgd_settings()), given.start()
    for name, found in gradient(given, "a", start).items():
        np.testing.assert_allclose(reply.arrays[name], start[name] - 0.5 * found, atol=1e-12)
    assert (reply.scalars["images"], reply.scalars["steps"]) == (10, 1)


def test_momentum_is_torch_s_and_starts_anew_each_round(task, sgd_settings, update, gradient):
    given, settings = task(sizes=(10, 5)), sgd_settings(local_epochs=2, momentum=0.5)
    start = given.start()
    first = gradient(given, "a", start)
    middle = {name: start[name] - 0.5 * first[name] for name in start}
    second = gradient(given, "a", middle)
    for number in (1, 2):
        reply = update(fedavg, given, settings, number=number)
        for name in start:
            expected = middle[name] - 0.5 * (0.5 * first[name] + second[name])
            np.testing.assert_allclose(reply.arrays[name], expected, atol=1e-12)


def test_the_server_weights_by_size_of_set(replies):
    given = replies(a=(0.0, {"images": 30}), b=(4.0, {"images": 10}))
    assert fedavg.server_step(ServerState({}), given).weights["w"] == 1.0


def test_batches_follow_the_seed_the_client_and_the_round(task, sgd_settings, update):
    settings = sgd_settings(batch=3)

    def weights(seed, client="a", number=1):
        both = dict.fromkeys("ab", task().data["a"])  # the same records
        return update(fedavg, task(seed=seed, data=both), settings, client, number).arrays[
            "1.weight"
        ]

    assert np.array_equal(weights(5), weights(5))
    for other in (weights(6), weights(5, "b"), weights(5, "a", 2)):
        assert not np.array_equal(weights(5), other)
