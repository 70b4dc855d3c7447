"""Holds what all clients agreed on before a round, and refuses terms under which it is not safe.

Each client has the terms of its own, and takes none from the server. Their digest enters every
signature, key and sealed share. So a message of another round, roster or length is a message of
other terms, and is refused.

**Threshold.** Let K be the number of clients, t that of colluding ones, and s the threshold: the
fewest clients of a sum, and the number of shares that give a secret. An honest client signs one set
of survivors, and hands out one of the two shares of each other client. A colluding client may sign
two sets, and hand out both. So the server needs 2 s answers to open two sets, and gets at most
(K - t) + 2 t. The rule 2 s > K + t therefore stops a server that lies about who dropped out
(Bonawitz et al. 2017, section 6.2, where t is below K / 3 and s above 2 K / 3).

**Bound.** All arithmetic is modulo 2^64. The clients declare that their entries lie in
[-bound, bound], and K bound < 2^63, so that no sum of such entries wraps. The server refuses a sum
that lies outside of [-n bound, n bound] for its n clients. That check reads the noisy sum alone, so
it is post-processing. No client checks its own entries: a refusal of a single client would tell of
its records. A client with entries beyond the bound spoils the sum, and its privacy stays.

>>> least_threshold(clients=50, colluding=25), least_threshold(clients=50, colluding=16)
(38, 34)
"""

from dataclasses import dataclass
from functools import cached_property

from pipelines.privacy.secure_sums.encoding import digest
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Roster

PROTOCOL = "fedlens secure sum, version 3"
# below it, a sum less one's own vector is another client's
FEWEST = 3
# the first integer that int64 does not have
LIMIT = 2**63


@dataclass(frozen=True)
class Terms:
    """Holds the terms of one round, all of them public.

    Attributes:
        run: The name of the run.
        round: The number of the round in it, from 0 on. A round that failed is never begun again.
        release: The name of the release. A client masks one vector for it, as far as its journal
            goes back. Another attempt is another release, with noise and a charge of its own.
        roster: The clients.
        length: How many integers a vector has.
        bound: The largest absolute value of an entry, as declared.
        threshold: s, the fewest clients of a sum.
        colluding: t, against how many colluding clients the terms shall hold.
        noise: What each client adds, in words: the name of a plan of noise shares. Clients with
            another plan have other terms.
        before: A hash of the release's earlier totals. Clients that were told other totals have
            other terms.

    Raises:
        Refusal: The terms are not safe, or make no sense.
    """

    run: str
    round: int
    release: str
    roster: Roster
    length: int
    bound: int
    threshold: int
    colluding: int
    noise: str = ""
    before: bytes = b""

    def __post_init__(self):
        clients = self.clients
        if clients < FEWEST:
            raise Refusal(
                f"A secure sum needs {FEWEST} clients at least. The roster has {clients}."
            )
        if self.round < 0 or self.length < 1 or self.bound < 1:
            raise Refusal("A round's number must be 0 or more, its length and bound 1 or more.")
        if clients * self.bound >= LIMIT:
            raise Refusal(
                f"The bound of {clients} clients must be below 2^63 / {clients}, so that no sum "
                f"wraps. Got {self.bound}."
            )
        if not 0 <= self.colluding < clients:
            raise Refusal(f"'colluding' must be in [0, {clients}). Got {self.colluding}.")
        least = least_threshold(clients=clients, colluding=self.colluding)
        if not least <= self.threshold <= clients:
            raise Refusal(
                f"With {clients} clients, of whom {self.colluding} may collude with the server, the "
                f"threshold must be in [{least}, {clients}]. Got {self.threshold}. Below, a server "
                "that lies about who dropped out would see single vectors."
            )

    @property
    def clients(self) -> int:
        """Returns K, the number of clients."""
        return len(self.roster)

    @property
    def least_honest(self) -> int:
        """Returns how many honest clients are in any sum, at least: s - t."""
        return self.threshold - self.colluding

    @cached_property
    def digest(self) -> bytes:
        """Returns a hash of all terms, 32 bytes."""
        return digest(
            PROTOCOL,
            self.run,
            self.round,
            self.release,
            self.roster.digest,
            self.length,
            self.bound,
            self.threshold,
            self.colluding,
            self.noise,
            self.before,
        )


def least_threshold(*, clients: int, colluding: int) -> int:
    """Returns the least s with 2 s > K + t."""
    return (clients + colluding) // 2 + 1


def most_colluding(*, clients: int, threshold: int) -> int:
    """Returns the largest t with 2 s > K + t; below 0 if there is none."""
    return 2 * threshold - clients - 1
