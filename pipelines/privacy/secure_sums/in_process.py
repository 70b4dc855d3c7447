"""Runs all clients and the server of a round in one process, through the code of a real one.

It is for simulations, tests and measurements. Whoever runs it sees every vector: it protects nobody.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pipelines.privacy.noise import Noise
from pipelines.privacy.secure_sums.client import Client
from pipelines.privacy.secure_sums.journal import Journal, Volatile
from pipelines.privacy.secure_sums.messages import Message, Step
from pipelines.privacy.secure_sums.noise_shares import SharePlan, noisy
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Identity, Roster
from pipelines.privacy.secure_sums.server import Server
from pipelines.privacy.secure_sums.terms import Terms, least_threshold

# who does not answer a step any more, by step
Drops = Mapping[Step, Collection[str]]


class Summation:
    """Adds vectors of several clients, one round of the protocol for each sum of a release.

    Args:
        release: The name of the release.
        sources: Each client's source of noise, by name.
    """

    def __init__(self, release: str, sources: Mapping[str, Noise]):
        self._release = release
        self._sources = sources
        self._identities = {name: Identity.fresh() for name in sources}
        keys = {name: identity.public for name, identity in self._identities.items()}
        self._roster = Roster(keys)
        self._journals = {name: Volatile() for name in sources}

    def total(self, number: int, sums: Mapping[str, np.ndarray], plan: SharePlan) -> np.ndarray:
        """Returns the sum over all clients, with every client's share of noise.

        Args:
            number: Which sum of the release it is, from 0 on. Each is made once.
            sums: Each client's sum over its records, int64 in lattice steps, all of one shape.
            plan: The plan of the release's noise.

        Returns:
            int64 of that shape, in lattice steps.

        Raises:
            Refusal: There is no sum, and why.
        """
        first = next(iter(sums.values()))
        terms = plan.terms(self._release, number, self._roster, first.size)
        clients = {}
        for name, values in sums.items():
            clients[name] = Client(
                name=name,
                identity=self._identities[name],
                terms=terms,
                vector=partial(noisy, values.ravel(), plan, number, noise=self._sources[name]),
                journal=self._journals[name],
            )
        return run(Server(terms), clients).reshape(first.shape)


@dataclass(frozen=True)
class Sent:
    """Holds one message of a round, for transcripts.

    Attributes:
        client: The client that received or sent it.
        by_client: Whether the client sent it.
        content: The message.
    """

    client: str
    by_client: bool
    content: Message


def run(
    server: Server,
    clients: Mapping[str, Client],
    drops: Drops | None = None,
    record: Callable[[Sent], None] = lambda sent: None,
) -> np.ndarray:
    """Runs a round, and returns the sum of the survivors' vectors, int64 [length].

    Args:
        server: A new server.
        clients: The clients by name.
        drops: Clients that do not answer from a step on.
        record: Takes each message.

    Raises:
        Refusal: There is no sum, and why.
    """
    gone: set[str] = set()
    while not server.done:
        gone |= set((drops or {}).get(server.step, ()))
        replies = {}
        for name in server.asked:
            request = server.request(name)
            record(Sent(name, False, request))
            if name in gone:
                continue
            replies[name] = _answered(clients[name], request)
            if isinstance(replies[name], Message):
                record(Sent(name, True, replies[name]))
        server.take(replies)
    return server.total


def example(
    vectors: Mapping[str, Sequence[int]],
    *,
    colluding: int = 0,
    threshold: int | None = None,
    bound: int = 2**40,
    round: int = 0,
    release: str | None = None,
    identities: Mapping[str, Identity] | None = None,
    journals: Mapping[str, Journal] | None = None,
) -> tuple[Terms, dict[str, Client]]:
    """Returns terms and clients that have these vectors, without any noise.

    Args:
        vectors: The vector of each client, by name.
        colluding: t.
        threshold: s; by default the least one that t allows.
        bound: Of each entry.
        round: The round's number.
        release: The release's name; by default one of this round.
        identities: The clients' keys for signatures; by default new ones.
        journals: The clients' journals; by default in memory.
    """
    identities = identities or {name: Identity.fresh() for name in vectors}
    least = least_threshold(clients=len(vectors), colluding=colluding)
    terms = Terms(
        run="example",
        round=round,
        release=release or f"example {round}",
        roster=Roster({name: identity.public for name, identity in identities.items()}),
        length=len(next(iter(vectors.values()))),
        bound=bound,
        threshold=threshold or least,
        colluding=colluding,
    )
    clients = {}
    for name, vector in vectors.items():
        clients[name] = Client(
            name=name,
            identity=identities[name],
            terms=terms,
            vector=partial(np.array, vector, np.int64),
            journal=journals[name] if journals else Volatile(),
        )
    return terms, clients


def _answered(client: Client, request: Message) -> Message | Refusal:
    """Returns a client's answer, or its refusal."""
    try:
        return client.answer(request)
    except Refusal as refusal:
        return refusal
