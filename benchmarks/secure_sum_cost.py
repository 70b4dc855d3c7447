"""Measures what a secure sum costs beside the plain one: CPU-seconds and bytes, by clients and length.

    python -m benchmarks.secure_sum_cost          # 20 CPU-seconds

A round runs in one process through the code of a real one (in_process.py). The clock is this
process's CPU time, so other work on the machine changes little. Vectors have no noise: its cost is
the same with a plain sum. Journals lie in memory, so the time of a disk is not in it.

The terms hold against t colluding clients, t being half of the clients, with the least threshold
that is safe. A round is measured without drop-outs, and with as many as the threshold allows. These
vanish after they sent shares, which is the dearest step for the server.
"""

import time
from dataclasses import dataclass, field

import numpy as np

from benchmarks.common import publish
from pipelines.privacy.secure_sums.client import Client
from pipelines.privacy.secure_sums.in_process import Sent, example, run
from pipelines.privacy.secure_sums.messages import Message, Step
from pipelines.privacy.secure_sums.server import Server

NAME = "secure_sum_cost"
CLIENTS = (5, 10, 20, 50)
# the weights of a linear model on 28 x 28 images of ten classes, and a small network's
LENGTHS = (7_840, 60_000)
# largest absolute entry
BOUND = 2**40
# of the plain sum, which is too quick for the clock
REPEATS = 20
# bytes of an integer that travels
WORD = 8


@dataclass
class Clock:
    """Answers as a client does, and adds up the CPU time of its answers.

    Attributes:
        client: The client.
        seconds: The CPU-seconds so far.
    """

    client: Client
    seconds: float = 0.0

    def answer(self, request: Message) -> Message:
        """Returns the client's answer."""
        start = time.process_time()
        reply = self.client.answer(request)
        self.seconds += time.process_time() - start
        return reply


@dataclass
class Traffic:
    """Adds up the bytes of a round's messages, by client.

    Attributes:
        up: Bytes that each client sent.
        down: Bytes that each client received.
    """

    up: dict[str, int] = field(default_factory=dict)
    down: dict[str, int] = field(default_factory=dict)

    def record(self, sent: Sent) -> None:
        """Takes one message."""
        direction = self.up if sent.by_client else self.down
        direction[sent.client] = direction.get(sent.client, 0) + sent.content.bytes


def vectors_of(clients: int, length: int) -> dict[str, np.ndarray]:
    """Returns a random vector for each client, int64 [length]."""
    rng = np.random.default_rng(clients)
    vectors = {}
    for place in range(clients):
        vectors[f"c{place:02}"] = rng.integers(-BOUND, BOUND, length)
    return vectors


def plain_sum(vectors: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """Returns the plain sum of vectors, and its CPU-seconds: the mean of REPEATS."""
    start = time.process_time()
    for _ in range(REPEATS):
        total = np.sum(vectors, axis=0)
    return total, (time.process_time() - start) / REPEATS


def measured(clients: int, length: int, *, dropped: bool) -> dict:
    """Runs a round and a plain sum.

    Args:
        clients: K.
        length: Integers of a vector.
        dropped: Whether as many clients drop out as the threshold allows.

    Returns:
        The row. Times and bytes of a client are means over those that answered to the end.
    """
    vectors = vectors_of(clients, length)
    terms, members = example(vectors, colluding=clients // 2, bound=BOUND)
    clocks = {name: Clock(member) for name, member in members.items()}
    gone = list(vectors)[terms.threshold :] if dropped else []
    kept = [name for name in vectors if name not in gone]
    traffic = Traffic()
    start = time.process_time()
    total = run(Server(terms), clocks, {Step.MASKED: gone}, traffic.record)
    all_seconds = time.process_time() - start
    plain, plain_seconds = plain_sum([vectors[name] for name in kept])
    server_seconds = all_seconds - sum(clock.seconds for clock in clocks.values())
    if (total != plain).any():
        raise AssertionError("The secure sum is not the plain sum.")
    return {
        "clients": clients,
        "length": length,
        "colluding": terms.colluding,
        "threshold": terms.threshold,
        "dropped": len(gone),
        "client_cpu_seconds": float(np.mean([clocks[name].seconds for name in kept])),
        "server_cpu_seconds": server_seconds,
        "plain_cpu_seconds": plain_seconds,
        "server_ratio": server_seconds / plain_seconds,
        "bytes_up": float(np.mean([traffic.up[name] for name in kept])),
        "bytes_down": float(np.mean([traffic.down[name] for name in kept])),
        "plain_bytes_up": WORD * length,
        "up_ratio": float(np.mean([traffic.up[name] for name in kept])) / (WORD * length),
    }


def main() -> None:
    """Measures all rows, prints and stores the table."""
    # the first round loads libraries
    measured(3, 10, dropped=False)
    rows = []
    for length in LENGTHS:
        for clients in CLIENTS:
            for dropped in (False, True):
                rows.append(measured(clients, length, dropped=dropped))
    publish(NAME, rows)


if __name__ == "__main__":
    main()
