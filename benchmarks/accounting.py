"""Measures the accounting of noise that falls from round to round, against dp-accounting's way.

    python -m benchmarks.accounting               # a few minutes on one core

Each client's noise falls by a hundredth a round, so that every round has a privacy loss
distribution of its own. The library's way makes and composes them with dp-accounting alone, for each
client. Ours makes them with array operations, and clients with equal noise share the figure.

Both ways take turns in one process on one thread. The least CPU time of several rounds counts.
"""

import argparse
from functools import partial

import dp_accounting
import dp_accounting.pld
from dp_accounting.pld import privacy_loss_distribution

from benchmarks.common import publish
from benchmarks.federated_round import seconds
from pipelines.privacy.accounting import loss_distributions
from pipelines.privacy.accounting.loss_distributions import FINE_INTERVAL

# First noise multipliers of five clients, of whom three have equal budgets.
CLIENTS = (1.64, 3.68, 1.64, 2.54, 1.64)
DECAY = 0.99
SAMPLING_RATE = 0.2
DELTA = 1e-5

# (noise multiplier, sampling rate, number of steps)
Schedule = tuple[tuple[float, float, int], ...]


def falling(first: float, rounds: int) -> Schedule:
    """Returns the schedule of a client whose noise falls after every round of one step."""
    steps = []
    for number in range(rounds):
        steps.append((first * DECAY**number, SAMPLING_RATE, 1))
    return tuple(steps)


def library_epsilon(schedule: Schedule) -> float:
    """Returns the epsilon of a schedule by dp-accounting alone."""
    accountant = dp_accounting.pld.PLDAccountant()
    for noise_multiplier, rate, count in schedule:
        noise = dp_accounting.GaussianDpEvent(noise_multiplier)
        step = dp_accounting.PoissonSampledDpEvent(rate, noise)
        accountant.compose(dp_accounting.SelfComposedDpEvent(step, count))
    return accountant.get_epsilon(DELTA)


def our_epsilon(schedule: Schedule) -> float:
    """Returns the epsilon of a schedule as a run computes it, where no client shares the figure."""
    loss_distributions.sampled_epsilon.cache_clear()
    return loss_distributions.sampled_epsilon(schedule=schedule, delta=DELTA)


def library_distributions(schedule: Schedule) -> None:
    """Makes the distribution of each step by dp-accounting, without composing them."""
    for noise_multiplier, rate, _ in schedule:
        privacy_loss_distribution.from_gaussian_mechanism(
            noise_multiplier, sampling_prob=rate, value_discretization_interval=FINE_INTERVAL
        )


def our_distributions(schedule: Schedule) -> None:
    """Makes the distribution of each step, without composing them."""
    for noise_multiplier, rate, _ in schedule:
        loss_distributions.sampled_gaussian(
            noise_multiplier=noise_multiplier, sampling_rate=rate, interval=FINE_INTERVAL
        )


def measured(first: float, rounds: int, repeats: int) -> dict:
    """Returns the row of one client: the least CPU-seconds of both ways, and how far they differ.

    Args:
        first: The client's first noise multiplier.
        rounds: Number of rounds, each with noise of its own.
        repeats: How often both ways take their turns.
    """
    schedule = falling(first, rounds)
    works = {
        "library_distributions": partial(library_distributions, schedule),
        "our_distributions": partial(our_distributions, schedule),
        "library": partial(library_epsilon, schedule),
        "ours": partial(our_epsilon, schedule),
    }
    row = {"first_noise_multiplier": first}
    for _ in range(repeats):
        for name, work in works.items():
            key = f"{name}_cpu_seconds"
            row[key] = min(row.get(key, float("inf")), seconds(work))
    made = row["library_distributions_cpu_seconds"] / row["our_distributions_cpu_seconds"]
    row["ratio_of_distributions"] = made
    row["ratio"] = row["library_cpu_seconds"] / row["ours_cpu_seconds"]
    row["epsilon"] = our_epsilon(schedule)
    row["epsilon_minus_library"] = row["epsilon"] - library_epsilon(schedule)
    return row


def main() -> None:
    """Measures all clients, prints and stores the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    rows = []
    for first in dict.fromkeys(CLIENTS):
        rows.append(measured(first, arguments.rounds, arguments.repeats))
    library = 0.0
    for row in rows:
        library += row["library_cpu_seconds"] * CLIENTS.count(row["first_noise_multiplier"])
    ours = sum(row["ours_cpu_seconds"] for row in rows)
    publish(
        "accounting",
        rows,
        ratio_of_all_clients=library / ours,
        clients=list(CLIENTS),
        rounds=arguments.rounds,
        repeats=arguments.repeats,
        sampling_rate=SAMPLING_RATE,
        interval=FINE_INTERVAL,
        delta=DELTA,
    )


if __name__ == "__main__":
    main()
