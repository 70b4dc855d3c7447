import numpy as np

from pipelines.config.training import Fedprox
from pipelines.federation.algorithms import fedavg, fedprox


def test_each_step_adds_mu_times_the_distance_from_the_global_weights(
    task, sgd_settings, update, gradient
):
    """The oracle takes two full-batch steps by hand.

    The first begins at the centre, where the proximal gradient is 0.
    """
    given, settings = task(sizes=(10, 5)), sgd_settings(Fedprox, local_epochs=2, mu=0.3)
    start = given.start()
    first = gradient(given, "a", start)
    middle = {name: start[name] - 0.5 * first[name] for name in start}
    second = gradient(given, "a", middle)
    reply = update(fedprox, given, settings)
    for name in start:
        proximal = 0.3 * (middle[name] - start[name])
        np.testing.assert_allclose(
            reply.arrays[name], middle[name] - 0.5 * (second[name] + proximal), atol=1e-12
        )


def test_without_the_term_it_is_fedavg_and_with_much_of_it_clients_stay(task, sgd_settings, update):
    given, plain = task(), update(fedavg, task(), sgd_settings(batch=3))
    none = update(fedprox, given, sgd_settings(Fedprox, batch=3, mu=0.0))
    strong = update(fedprox, given, sgd_settings(Fedprox, batch=3, mu=1.8))
    start = given.start()
    for name in start:
        assert np.array_equal(none.arrays[name], plain.arrays[name])
        assert np.linalg.norm(strong.arrays[name] - start[name]) < np.linalg.norm(
            plain.arrays[name] - start[name]
        )
