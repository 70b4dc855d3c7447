"""A client's ledger: every release of one data set's records, entered before it is made.

    python -m pipelines.privacy.ledger show | verify
    python -m pipelines.privacy.ledger plan --epsilons 1 3 10 --generators 2

The last one tells what a grid of experiments would cost.

A release has two lines. `open` is written before it is made, with the most that it may cost, and
`close` after, with what it did cost. A release is known by its mechanism and version, its records
and the facts that shape it (`identity`). An open one is resumed and charged once. A closed one is
reused and costs nothing.

The claim that a dead run is charged once rests on two conditions. Nothing of it has left the
process, and whether it died did not depend on its noise.

>>> from pathlib import Path
>>> from pipelines.privacy.discrete_gaussian import Budget
>>> ledger = Ledger(Path("ledgers/digits/c0.jsonl"), delta=1e-5, lifetime_epsilon=5.0)
>>> cost = {"kind": "gaussian", "mu": Budget(epsilon=3.0, delta=1e-5).mu}
>>> first = Release("dp_moments", 1, {"seed": 0}, "hash of the records", cost, {"delta": 1e-5})
>>> ledger.open(first)
'new'
>>> ledger.close(first.fingerprint)
>>> ledger.open(first)
'reused'
>>> second = Release("dp_moments", 1, {"seed": 1}, "hash of the records", cost, {"delta": 1e-5})
>>> ledger.open(second)
'new'
>>> round(ledger.total_epsilon(), 3)  # of both; not 6, for Gaussian releases compose better
4.463
>>> third = Release("dp_moments", 1, {"seed": 2}, "hash of the records", cost, {"delta": 1e-5})
>>> ledger.open(third)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
pipelines.privacy.ledger_folder.LedgerError: This dp_moments release would bring c0 to a total ...
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pipelines.privacy import accounting
from pipelines.privacy.ledger import wording
from pipelines.privacy.ledger.chain import Chain, LedgerError, canonical
from pipelines.privacy.ledger.identity import Identity
from pipelines.privacy.ledger.release import Release

__all__ = ["Identity", "Ledger", "LedgerError", "Release"]

# of a release, as its `open` entry holds them
FIELDS = ("fingerprint", "mechanism", "version", "parameters", "data", "cost", "statement")


class Ledger:
    """The ledger of one client and data set, in a file of its own.

    Attributes:
        path: The file.
        delta: The delta of the totals, and of today's releases.
        lifetime_epsilon: Caps the total at `cap_delta()`, where it is set.
        lifetime_delta: The delta of the cap, where it is set.
    """

    def __init__(
        self,
        path: Path,
        *,
        delta: float,
        lifetime_epsilon: float | None = None,
        lifetime_delta: float | None = None,
    ):
        self.path = path
        self.delta = delta
        self.lifetime_epsilon = lifetime_epsilon
        self.lifetime_delta = lifetime_delta
        self.chain = Chain(path)
        self.entries = self.chain.entries

    def open(self, release: Release) -> str:
        """Enters a release before it is made.

        Returns:
            `new`, `resumed` (an earlier run of it died) or `reused` (it was made before).

        Raises:
            LedgerError: The file was tampered with, or the total would exceed `lifetime_epsilon`.
        """
        with self.chain.locked():
            events = []
            for entry in self.entries():
                if entry["fingerprint"] == release.fingerprint:
                    events.append(entry["event"])
            if events:
                return "reused" if "close" in events else "resumed"
            self._check_lifetime(release)
            fields = {name: getattr(release, name) for name in FIELDS}
            self.chain.append({"event": "open", **fields})
            return "new"

    def check(self, release: Release) -> None:
        """Refuses a release that `open` would refuse, and enters nothing.

        Raises:
            LedgerError: `open` would refuse it.
        """
        if self.knows(release.fingerprint):
            return
        self._check_lifetime(release)

    def recognised(self, release: Release) -> Release:
        """Returns the release under the fingerprint by which this ledger knows it.

        It is returned as it is where the ledger does not know it. A release that was made is the
        same where its facts are. One that died before it was made must have the same cost, too;
        otherwise it is charged anew.
        """
        entries = self.entries()
        made = {entry["fingerprint"] for entry in entries if entry["event"] == "close"}
        cost = canonical(release.cost)
        for entry in reversed(entries):
            if entry["event"] != "open" or not release.is_in(entry):
                continue
            if entry["fingerprint"] in made or canonical(entry["cost"]) == cost:
                return replace(release, recorded=entry["fingerprint"])
        return release

    def close(
        self, fingerprint: str, *, cost: dict | None = None, statement: dict | None = None
    ) -> None:
        """Enters that a release was made. A release that is closed already stays as it is.

        Args:
            fingerprint: The release's name, as it was opened.
            cost: What it did cost, where that is less than planned.
            statement: The privacy statement that belongs to this cost.

        Raises:
            LedgerError: This ledger knows no such open release, or was tampered with.
        """
        with self.chain.locked():
            opened = self._find(fingerprint, "open")
            if opened is None:
                raise LedgerError(f"{self.path} knows no open release {fingerprint[:12]}.")
            if self._find(fingerprint, "close") is None:
                final = {
                    "cost": cost or opened["cost"],
                    "statement": statement or opened["statement"],
                }
                self.chain.append({"event": "close", "fingerprint": fingerprint, **final})

    def knows(self, fingerprint: str) -> bool:
        """Returns whether the release was entered before, so that it costs nothing more."""
        return self._find(fingerprint, "open") is not None

    def may_know(self, mechanism: str, version: int, data: str) -> bool:
        """Returns False if no entry is of this code and these records, whatever its parameters.

        Args:
            mechanism, version, data: As in `Release`.
        """
        looked_for = (mechanism, version, data)
        opened = [entry for entry in self.entries() if entry["event"] == "open"]
        known = {(entry["mechanism"], entry["version"], entry["data"]) for entry in opened}
        return looked_for in known

    def has_made(self, fingerprint: str) -> bool:
        """Returns whether the release was made, so that what it cost is final."""
        return self._find(fingerprint, "close") is not None

    def statement(self, fingerprint: str) -> dict:
        """Returns the privacy statement of a closed release with its `cost`.

        Cards and reports print the statement, and add up the costs.

        Raises:
            LedgerError: This ledger knows no such closed release.
        """
        for entry in self.closed():
            if entry["fingerprint"] == fingerprint:
                return entry["statement"]
        raise LedgerError(
            f"{self.path} knows no closed release {fingerprint[:12]}; run train_generator again."
        )

    def closed(self) -> list[dict]:
        """Returns the `close` entries of all releases that were made, in their order.

        The order never changes. Each `statement` has its `cost`, as cards and reports print it.
        """
        made = []
        for entry in self.entries():
            if entry["event"] == "close":
                statement = {**entry["statement"], "cost": entry["cost"]}
                made.append({**entry, "statement": statement})
        return made

    def costs(self) -> dict[str, dict]:
        """Returns the cost of each release by fingerprint: as closed, or as opened while open."""
        return {entry["fingerprint"]: entry["cost"] for entry in self.entries()}

    def total_epsilon(self, extra: Sequence[dict] = (), *, delta: float | None = None) -> float:
        """Returns epsilon of everything entered so far, together with `extra` costs.

        Args:
            extra: Costs of releases that are not entered.
            delta: The delta at which epsilon holds; the ledger's by default.
        """
        costs = [*self.costs().values(), *extra]
        return accounting.total_epsilon(costs=costs, delta=delta or self.delta)

    def total_in_words(self, extra: Sequence[dict] = (), *, delta: float | None = None) -> str:
        """Returns `total_epsilon` as it is printed. An infinite one says why."""
        costs = [*self.costs().values(), *extra]
        return wording.total(self.total_epsilon(extra, delta=delta), costs)

    def refuses(self, total: float) -> bool:
        """Returns True if a total at `cap_delta()` is above the cap: nothing may bring it there."""
        return self.lifetime_epsilon is not None and total > self.lifetime_epsilon

    def cap_delta(self) -> float:
        """Returns the delta at which `lifetime_epsilon` holds.

        It is `lifetime_delta`, or the smallest that this ledger or today's parameters state. A
        larger delta gives a smaller total, and would lift the cap.
        """
        stated = [entry["statement"].get("delta", self.delta) for entry in self.entries()]
        return self.lifetime_delta or min([self.delta, *stated])

    def summary(self) -> dict:
        """Returns the total `epsilon`, its `delta` and the number of `releases`, for a report."""
        return {"epsilon": self.total_epsilon(), "delta": self.delta, "releases": len(self.costs())}

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """Holds a lock while a release is made: two processes must not make the same one twice."""
        with self.chain.flock(".making"):
            yield

    def _find(self, fingerprint: str, event: str) -> dict | None:
        """Returns the first entry of a release for an event, or None."""
        for entry in self.entries():
            if (entry["fingerprint"], entry["event"]) == (fingerprint, event):
                return entry
        return None

    def _check_lifetime(self, release: Release) -> None:
        """Refuses a release that would bring the total above the cap.

        Raises:
            LedgerError: It would.
        """
        if self.lifetime_epsilon is None:
            return
        delta = self.cap_delta()
        if self.refuses(self.total_epsilon([release.cost], delta=delta)):
            why = "" if delta == self.delta else f" ({self._reason_for_cap_delta()})"
            total_in_words = self.total_in_words([release.cost], delta=delta)
            raise LedgerError(
                f"This {release.mechanism} release would bring {self.path.stem} to a total epsilon "
                f"of {total_in_words} at delta {delta:g}{why}, above its lifetime_epsilon of "
                f"{self.lifetime_epsilon:g}. Nothing was spent."
            )

    def _reason_for_cap_delta(self) -> str:
        """Returns a phrase on where the delta of the cap comes from."""
        if self.lifetime_delta:
            return "its lifetime_delta"
        return (
            "the smallest that its ledger states; a lifetime_delta beside lifetime_epsilon would "
            "name another"
        )
