"""Measures seconds of a secure sum and of a plain one over NVFlare on loopback, by clients and length.

    python -m benchmarks.secure_sum_network          # forty clients and a server start here
    python -m benchmarks.secure_sum_network --most 10

One job measures all rows. All clients of the largest row are connected, and a row asks the first K
of them. A client has two processes, which take 0.45 GB together: forty need 20 GB of free memory.
The terms hold against t colluding clients, t being half of the clients. For the plain sum each
client answers once with its vector. A round of each takes turns, and the median of several counts.
Vectors have no noise, and journals lie in memory, as in a joint release.

Beside them stands the same round in this process, of which `secure_sum_cost` measures CPU-seconds
and bytes. All processes share this machine's cores, which a real federation does not.
"""

import argparse
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from nvflare.collab import collab

from benchmarks import engine_round
from benchmarks.common import publish
from benchmarks.secure_sum_cost import BOUND, LENGTHS, vectors_of
from pipelines import config
from pipelines.config.data import Client as ClientParams
from pipelines.federation.core.messages import any_bounds
from pipelines.federation.network.flare import client, names
from pipelines.federation.network.flare import server as served
from pipelines.federation.network.flare.client import answer_or_refusal
from pipelines.federation.network.flare.engine import NetworkEngine
from pipelines.files import write_json
from pipelines.joint import coordinator
from pipelines.joint.member import message_of
from pipelines.privacy.secure_sums import client as members
from pipelines.privacy.secure_sums import in_process
from pipelines.privacy.secure_sums.journal import Volatile
from pipelines.privacy.secure_sums.roster import Identity, Roster
from pipelines.privacy.secure_sums.server import Server
from pipelines.privacy.secure_sums.terms import Terms, least_threshold

NAME = "secure_sum_network"
CLIENTS = (3, 5, 10, 20, 40)
ROUNDS = 5
# seconds in which all clients must have come
START = 1200.0


@dataclass(frozen=True)
class Round:
    """Names a round: whose vectors are added, and which one of the job it is.

    Attributes:
        keys: The public keys of its clients, as hexadecimal text, by name.
        number: The number of the round in the job.
        length: How many integers a vector has.
    """

    keys: dict[str, str]
    number: int
    length: int

    @property
    def terms(self) -> Terms:
        """Returns the terms of the round."""
        count = len(self.keys)
        colluding = count // 2
        return Terms(
            run=NAME,
            round=self.number,
            release=f"round {self.number}",
            roster=Roster({name: bytes.fromhex(key) for name, key in self.keys.items()}),
            length=self.length,
            bound=BOUND,
            threshold=least_threshold(clients=count, colluding=colluding),
            colluding=colluding,
        )


class Summand(client.Client):
    """Is a client that has a vector for each round."""

    def __init__(self):
        super().__init__()
        self.identity = Identity.fresh()

    @collab.publish
    @answer_or_refusal
    def key(self) -> dict:
        """Returns {"key": the public key of this client's signatures}."""
        return {"key": self.identity.public.hex()}

    @collab.publish
    @answer_or_refusal
    def enter(self, keys: dict, number: int, length: int) -> dict:
        """Begins a round.

        Args:
            keys, number, length: As the attributes of `Round`.
        """
        self.vector = vectors_of(len(keys), length)[collab.site_name]
        self.member = members.Client(
            name=collab.site_name,
            identity=self.identity,
            terms=Round(keys, number, length).terms,
            vector=partial(np.array, self.vector),
            journal=Volatile(),
        )
        return {}

    @collab.publish
    @answer_or_refusal
    def step_together(self, number: int, arrays: dict, scalars: dict) -> dict:
        """Answers a step, as a client of a joint release.

        Args:
            number: The number of the round.
            arrays: Of the server's message.
            scalars: Of the server's message.
        """
        answer = self.member.answer(message_of(arrays, scalars))
        return {"arrays": answer.arrays, "scalars": answer.scalars}

    @collab.publish
    @answer_or_refusal
    def plain(self) -> dict:
        """Returns {"vector": the client's, as it is}."""
        return {"vector": self.vector}


class Adder(served.Server):
    """Is the server of the benchmark."""

    @collab.main
    def main(self) -> None:
        """Measures all rows and writes them into the job's folder."""
        clients = {proxy.name: proxy for proxy in collab.clients}
        engine = NetworkEngine(clients, config.load().federation, any_bounds({}))
        keys = {name: answer["key"] for name, answer in engine.ask("key")}
        rows = []
        number = 0
        for length in LENGTHS:
            for count in counts(len(keys)):
                of_round = {name: keys[name] for name in sorted(keys)[:count]}
                pairs = []
                for _ in range(ROUNDS):
                    pairs.append(both(engine, Round(of_round, number, length)))
                    number += 1
                secure, plain = np.median(pairs, axis=0).tolist()
                row = {"clients": count, "length": length, "nvflare_seconds": secure}
                rows.append({**row, "plain_nvflare_seconds": plain})
        folder = Path(collab.workspace.get_run_dir(collab.fl_ctx.get_job_id()))
        write_json(folder / names.HISTORY, {"rows": rows})


def both(engine: NetworkEngine, of: Round) -> tuple[float, float]:
    """Returns the seconds of a secure sum, and of a plain one of the same vectors.

    Raises:
        AssertionError: The sums differ.
    """
    arguments = {"keys": of.keys, "number": of.number, "length": of.length}
    engine.ask_each("enter", dict.fromkeys(of.keys, arguments))
    terms = of.terms
    present = coordinator.Members(terms.roster, terms.threshold, engine.ask_each, {})
    start = time.perf_counter()
    total = coordinator.summed(Server(terms), of.number, present, coordinator.Traffic())
    middle = time.perf_counter()
    vectors = engine.ask_each("plain", {name: {} for name in of.keys})
    plain = np.sum([answer["vector"] for answer in vectors.values()], axis=0)
    end = time.perf_counter()
    if (total != plain).any():
        raise AssertionError("The secure sum is not the plain sum.")
    return middle - start, end - middle


def here(clients: int, length: int) -> float:
    """Returns the seconds of a secure sum in this process: the median of ROUNDS."""
    seconds = []
    for number in range(ROUNDS):
        vectors = vectors_of(clients, length)
        terms, summands = in_process.example(
            vectors, colluding=clients // 2, bound=BOUND, round=number
        )
        start = time.perf_counter()
        in_process.run(Server(terms), summands)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def counts(most: int) -> list[int]:
    """Returns the numbers of clients that have a row, if there are `most` clients."""
    return [count for count in CLIENTS if count <= most]


def with_clients(params: config.Params, count: int) -> config.Params:
    """Returns the parameters with so many clients, named as the vectors are."""
    clients = {name: ClientParams(epsilon=1.0) for name in vectors_of(count, 1)}
    patient = params.federation.model_copy(update={"start_timeout": START})
    return params.model_copy(update={"clients": clients, "federation": patient})


def main() -> None:
    """Measures all rows over NVFlare and in this process, prints and stores the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, choices=CLIENTS, default=max(CLIENTS), help="clients")
    params = with_clients(config.load(), parser.parse_args().most)
    answer = engine_round.over_nvflare(params, NAME, server="Adder", client="Summand")
    rows = []
    for row in answer["rows"]:
        inprocess = here(row["clients"], row["length"])
        rows.append({**row, "inprocess_seconds": inprocess})
    publish(NAME, rows, rounds=ROUNDS)


if __name__ == "__main__":
    main()
