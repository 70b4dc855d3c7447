"""Says what releases bring a client's total to, before they are spent.

A total is at the delta of the client's cap, if it has one, and else at its ledger's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines import words
from pipelines.privacy.ledger import Ledger, Release, wording


@dataclass(frozen=True)
class Total:
    """Holds what all releases of a client together come to.

    Attributes:
        epsilon: The total; infinite where nothing is claimed.
        delta: Its delta.
        cap: The client's `lifetime_epsilon`, or None.
        is_above_cap: True if the ledger refuses what brings it there.
        in_words: The total as it is printed.
    """

    epsilon: float
    delta: float
    cap: float | None
    is_above_cap: bool
    in_words: str

    @property
    def standing(self) -> str:
        """Returns a phrase on what was spent of what cap."""
        cap = "no cap" if self.cap is None else f"of a cap of {self.cap:g}"
        return f"epsilon {self.in_words} at delta {self.delta:g} so far, {cap}"


def after(ledger: Ledger, costs: Sequence[dict] = ()) -> Total:
    """Returns the total of what a ledger holds, together with costs that are not entered.

    Args:
        ledger: The client's ledger.
        costs: Of the releases that are to come.

    Raises:
        LedgerError: The ledger was tampered with.
    """
    cap = ledger.lifetime_epsilon
    delta = ledger.delta if cap is None else ledger.cap_delta()
    epsilon = ledger.total_epsilon(costs, delta=delta)
    held = [*ledger.costs().values(), *costs]
    return Total(epsilon, delta, cap, ledger.refuses(epsilon), wording.total(epsilon, held))


def announce(ledgers: dict[str, Ledger], releases: dict[str, Release]) -> None:
    """Prints what a release brings each client's total to, before it is spent."""
    sentences = {}
    for client in sorted(releases):
        release = releases[client]
        costs = [] if ledgers[client].knows(release.fingerprint) else [release.cost]
        sentences[client] = _sentence(after(ledgers[client], costs))
    for line in words.by_client(sentences):
        print(f"  {line}")


def _sentence(total: Total) -> str:
    cap = "" if total.cap is None else f" of a lifetime {total.cap:g}"
    return (
        f"with this, all its releases together come to epsilon {total.in_words}{cap} "
        f"at delta {total.delta:g}"
    )
