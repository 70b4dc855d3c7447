"""A client's ledger: every release it ever made of one data set's records, entered before it is made.

    python -m pipelines.privacy.ledger show | verify
    python -m pipelines.privacy.ledger plan --epsilons 1 3 10 --generators 2    # what a grid of experiments would cost

Two lines per release: `open` before it is made, with what it may cost at most, and `close` after, with what it did. A
release is known by its mechanism and version, its records and the facts that shape it (`identity`): an open one is
resumed and charged once, a closed one is reused and costs nothing. That a dead run is charged once rests on nothing of
it having left the process, and on whether it died not depending on its noise.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipelines.privacy import accounting
from pipelines.privacy.ledger import wording
from pipelines.privacy.ledger.chain import Chain, LedgerError, canonical, digest
from pipelines.privacy.ledger.identity import Identity

__all__ = ["Identity", "Ledger", "LedgerError", "Release"]


@dataclass(frozen=True)
class Release:
    """What is to be released.

    Attributes:
        mechanism, version: which code makes it; a change of either is another release.
        parameters: all that shapes it but the data and the noise.
        data: hash of the records it reads.
        cost: the most it may cost (accounting.total_epsilon says in which form).
        statement: its privacy statement (statement.Statement.as_dict()), known before it is made.
        identity: which parameters are facts.
        recorded: the fingerprint under which a ledger holds this very release (`Ledger.recognised`).
    """

    mechanism: str
    version: int
    parameters: dict
    data: str
    cost: dict
    statement: dict
    identity: Identity = field(default_factory=Identity)
    recorded: str | None = None

    @property
    def fingerprint(self) -> str:
        """The name of this release in a ledger and in the store.

        It holds the cost, too: a run that died must not go on under an entry that allows it less.
        """
        return self.recorded or digest([self.facts, self.cost])

    @property
    def facts(self) -> str:
        """The hash of all that identifies this release, whatever it costs."""
        return digest([self.mechanism, self.version, _facts(self.identity, vars(self)), self.data])

    @property
    def former_fingerprint(self) -> str:
        """The name that earlier versions of this code gave: of all parameters, facts or not."""
        return digest([self.mechanism, self.version, self.parameters, self.data])

    def is_in(self, entry: dict) -> bool:
        """Returns whether an `open` entry, of whatever version of this code, is about this release."""
        known_by = ("mechanism", "version", "data")
        if any(entry[name] != getattr(self, name) for name in known_by):
            return False
        return canonical(_facts(self.identity, entry)) == canonical(
            _facts(self.identity, vars(self))
        )


def _facts(identity: Identity, content: dict) -> dict[str, object]:
    return identity.facts(content["parameters"], content["statement"].get("guarantee"))


class Ledger:
    """One file per client and data set. `lifetime_epsilon` at `cap_delta` caps the total, where set.

    delta: of the totals, and of today's releases.
    """

    def __init__(
        self,
        path: Path,
        *,
        delta: float,
        lifetime_epsilon: float | None = None,
        lifetime_delta: float | None = None,
    ):
        self.path, self.delta = path, delta
        self.lifetime_epsilon, self.lifetime_delta = lifetime_epsilon, lifetime_delta
        self.chain = Chain(path)
        self.entries = self.chain.entries

    def open(self, release: Release) -> str:
        """Enters the release before it is made: `new`, `resumed` (it died before) or `reused` (it was made before).

        Raises:
            LedgerError: the file was tampered with, or the total would exceed `lifetime_epsilon`.
        """
        with self.chain.locked():
            known = [
                entry["event"]
                for entry in self.entries()
                if entry["fingerprint"] == release.fingerprint
            ]
            if known:
                return "reused" if "close" in known else "resumed"
            self._check_lifetime(release)
            fields = (
                "fingerprint",
                "mechanism",
                "version",
                "parameters",
                "data",
                "cost",
                "statement",
            )
            self.chain.append(
                {"event": "open", **{field: getattr(release, field) for field in fields}}
            )
            return "new"

    def check(self, release: Release) -> None:
        """Whether `open` would refuse it.

        Raises:
            LedgerError: it would.
        """
        if self.knows(release.fingerprint):
            return
        self._check_lifetime(release)

    def recognised(self, release: Release) -> Release:
        """Returns the release under the fingerprint by which this ledger knows it, or as it is where it does not.

        A release that was made is the same where its facts are. One that died before it was made must have the same
        cost, too: else it is charged anew.
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
        """The release was made; `cost` and `statement` say what it did cost where that is less than planned."""
        with self.chain.locked():
            opened, closed = (self._find(fingerprint, event) for event in ("open", "close"))
            if opened is None:
                raise LedgerError(f"{self.path} knows no open release {fingerprint[:12]}.")
            if closed is None:
                final = {
                    "cost": cost or opened["cost"],
                    "statement": statement or opened["statement"],
                }
                self.chain.append({"event": "close", "fingerprint": fingerprint, **final})

    def knows(self, fingerprint: str) -> bool:
        """Whether the release was entered before: it costs nothing more."""
        return self._find(fingerprint, "open") is not None

    def has_made(self, fingerprint: str) -> bool:
        """Returns whether the release was made: what it cost is final."""
        return self._find(fingerprint, "close") is not None

    def statement(self, fingerprint: str) -> dict:
        """The privacy statement of a closed release and its `cost`: what cards and reports print and add up.

        Raises:
            LedgerError: this ledger knows no such closed release.
        """
        made = [
            entry["statement"] for entry in self.closed() if entry["fingerprint"] == fingerprint
        ]
        if not made:
            raise LedgerError(
                f"{self.path} knows no closed release {fingerprint[:12]}; run train_generator again."
            )
        return made[0]

    def closed(self) -> list[dict]:
        """The `close` entries of all releases that were made, in their order, which never changes; their `statement`
        with its `cost`, as cards and reports print it."""
        made = [entry for entry in self.entries() if entry["event"] == "close"]
        return [
            {**entry, "statement": {**entry["statement"], "cost": entry["cost"]}} for entry in made
        ]

    def costs(self) -> dict[str, dict]:
        """{fingerprint: cost}, as closed, or as opened while it is open."""
        return {entry["fingerprint"]: entry["cost"] for entry in self.entries()}

    def total_epsilon(self, extra: list[dict] = (), *, delta: float | None = None) -> float:
        """Epsilon at `delta`, or the ledger's, of everything entered so far, and of `extra` costs if they were too."""
        return accounting.total_epsilon(
            costs=[*self.costs().values(), *extra], delta=delta or self.delta
        )

    def total_in_words(self, extra: list[dict] = (), *, delta: float | None = None) -> str:
        """`total_epsilon` as it is printed: an infinite one says why."""
        return wording.total(
            self.total_epsilon(extra, delta=delta), [*self.costs().values(), *extra]
        )

    def cap_delta(self) -> float:
        """The delta at which `lifetime_epsilon` holds: `lifetime_delta`, or the smallest that this ledger or today's
        parameters state. A larger delta gives a smaller total, and would lift the cap."""
        stated = [entry["statement"].get("delta", self.delta) for entry in self.entries()]
        return self.lifetime_delta or min([self.delta, *stated])

    def summary(self) -> dict:
        """{"epsilon", "delta", "releases": how many were entered}: everything so far, for a report."""
        return {"epsilon": self.total_epsilon(), "delta": self.delta, "releases": len(self.costs())}

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """Held while a release is made: two processes must not make the same one twice."""
        with self.chain.flock(".making"):
            yield

    def _find(self, fingerprint: str, event: str) -> dict | None:
        wanted = (fingerprint, event)
        return next(
            (entry for entry in self.entries() if (entry["fingerprint"], entry["event"]) == wanted),
            None,
        )

    def _check_lifetime(self, release: Release) -> None:
        if self.lifetime_epsilon is None:
            return
        delta = self.cap_delta()
        total = self.total_epsilon([release.cost], delta=delta)
        if total > self.lifetime_epsilon:
            why = "" if delta == self.delta else f" ({self._of_the_cap()})"
            total_in_words = self.total_in_words([release.cost], delta=delta)
            raise LedgerError(
                f"This {release.mechanism} release would bring {self.path.stem} to a total epsilon "
                f"of {total_in_words} at delta {delta:g}{why}, above its lifetime_epsilon of "
                f"{self.lifetime_epsilon:g}. Nothing was spent."
            )

    def _of_the_cap(self) -> str:
        if self.lifetime_delta:
            return "its lifetime_delta"
        return "the smallest that its ledger states; a lifetime_delta beside lifetime_epsilon would name another"
