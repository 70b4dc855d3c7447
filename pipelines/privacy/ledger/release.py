"""Describes a release, as a ledger enters it before it is made."""

from dataclasses import dataclass, field

from pipelines.privacy.ledger.chain import canonical, digest
from pipelines.privacy.ledger.identity import Identity


@dataclass(frozen=True)
class Release:
    """Describes a release that is to be made.

    Attributes:
        mechanism: The name of the code that makes it.
        version: The version of that code. A change of either is another release.
        parameters: All that shapes the release but the data and the noise.
        data: Hash of the records that it reads.
        cost: The most it may cost (accounting.total_epsilon says in which form).
        statement: Its privacy statement (statement.Statement.as_dict()), known before it is made.
        identity: Declares which parameters are facts.
        recorded: The fingerprint under which a ledger holds this very release
            (`Ledger.recognised`), or None.
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
        """Returns the name of this release in a ledger and in the store.

        It covers the cost, too: a run that died must not go on under an entry that allows less.
        """
        return self.recorded or digest([self.facts, self.cost])

    @property
    def facts(self) -> str:
        """Returns the hash of all that identifies this release, whatever it costs."""
        return digest([self.mechanism, self.version, _facts(self.identity, vars(self)), self.data])

    @property
    def former_fingerprint(self) -> str:
        """Returns the name by earlier versions of this code, which covers all parameters."""
        return digest([self.mechanism, self.version, self.parameters, self.data])

    def is_in(self, entry: dict) -> bool:
        """Returns True if an `open` entry is about this release, whatever code wrote it."""
        known_by = ("mechanism", "version", "data")
        if any(entry[name] != getattr(self, name) for name in known_by):
            return False
        entered = _facts(self.identity, entry)
        return canonical(entered) == canonical(_facts(self.identity, vars(self)))


def _facts(identity: Identity, content: dict) -> dict[str, object]:
    """Returns the facts of a release, or of its entry in a ledger."""
    return identity.facts(content["parameters"], content["statement"].get("guarantee"))
