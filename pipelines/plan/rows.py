"""Holds planned releases against the ledgers: which are new, and what each client's total becomes.

A release that the ledger knows is not charged again, as `releases.make_once` decides it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipelines import release_store, release_totals, releases
from pipelines.config import Params
from pipelines.plan import candidates
from pipelines.plan.candidates import Candidate
from pipelines.plan.records import Records
from pipelines.privacy.ledger import Ledger
from pipelines.release_totals import Total

NEW = "new"
MADE = "made before"
BEGUN = "begun before"


@dataclass(frozen=True)
class Row:
    """Says what one release does to one client.

    Attributes:
        client: The client's name.
        name: Of the generator or noisy method.
        stage: The stage's name in dvc.yaml.
        state: NEW is charged; MADE and BEGUN were charged when they were entered.
        epsilon, delta: What the release claims alone.
        total: All of the client's releases together, once this one and those above it are made.
        trust: Whom the claim trusts, in a sentence, or None.
    """

    client: str
    name: str
    stage: str
    state: str
    epsilon: float
    delta: float
    total: Total
    trust: str | None = None

    @property
    def is_refused(self) -> bool:
        """Returns True if the ledger would refuse the release for its cap."""
        return self.state == NEW and self.total.is_above_cap


def of(params: Params, dataset: str, ledgers: dict[str, Ledger], records: Records) -> Iterator[Row]:
    """Yields the rows of a data set in the order in which DVC makes the releases.

    Args:
        params: The parameters.
        dataset: The data set's name.
        ledgers: The ledger of each client.
        records: What the releases read.

    Raises:
        UserError: A stage would refuse its plan, or a ledger was tampered with.
    """
    to_come: dict[str, list[dict]] = {client: [] for client in params.clients}
    for candidate in candidates.all_of(params, dataset, ledgers, records):
        states = _states(candidate, ledgers)
        for client, part in candidate.parts.items():
            if states[client] == NEW:
                to_come[client].append(part.cost)
            yield Row(
                client,
                candidate.name,
                candidate.stage,
                states[client],
                part.epsilon,
                part.delta,
                release_totals.after(ledgers[client], to_come[client]),
                part.trust,
            )


def _states(candidate: Candidate, ledgers: dict[str, Ledger]) -> dict[str, str]:
    """Returns {client: whether its ledger has the release}."""
    parts = candidate.parts
    planned = {client: part.release for client, part in parts.items() if part.release}
    knowing = {client: ledgers[client] for client in planned}
    states = dict.fromkeys(parts, NEW)
    if not planned:
        return states
    entries = releases.match_recorded(knowing, planned)
    if candidate.is_apart:
        # each attempt is entered under a name of its own, and what was collected is kept
        return dict.fromkeys(parts, MADE) if release_store.collected(knowing, entries) else states
    for client, release in entries.items():
        if knowing[client].has_made(release.fingerprint):
            states[client] = MADE
        elif knowing[client].knows(release.fingerprint):
            states[client] = BEGUN
    return states
