"""States the privacy that stands beside every released number (DESIGN rule 1).

>>> statement = Statement(
...     mechanism="toy", epsilon=3.0, delta=1e-5, mu=0.72, guarantee="formal", noise="discrete"
... )
>>> statement.sentence[:56]
'Anyone who sees this release and everything else about a'
>>> combined([statement.as_dict()])
{'epsilon_max': 3.0, 'guarantee': 'formal'}
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from decimal import ROUND_CEILING, Context

NOT_COVERED = (
    "the locally fine-tuned model",
    "metrics computed on private records",
    "timing",
    "a person whose records lie at several clients or number more than one",
)

# what no guarantee covers because of the network of a model
OF_NETWORK = {
    "encoder": (
        "the public images that the encoder was trained on, which may show the same as private ones",
    )
}


@dataclass(frozen=True)
class Statement:
    """Says who is protected from what, at which price, and by whose arithmetic.

    Attributes:
        mechanism: The mechanism in words.
        epsilon, delta: The guarantee.
        mu: The same as Gaussian DP, where the mechanism has one.
        guarantee: formal | none.
        noise: The source of the noise.
        accountant: The arithmetic behind epsilon.
        unit: What is protected.
        relation: The neighbouring relation.
        sampling: How records are sampled.
        details: The mechanism's own parameters, among them L2 sensitivity and sigma of what is
            released, in its own units.
        not_covered: What the guarantee says nothing about.
        trust: Whom a client has to trust, in a sentence, where that is more than itself.
    """

    mechanism: str
    epsilon: float
    delta: float
    mu: float | None
    guarantee: str
    noise: str
    accountant: str = "exact Gaussian DP (mu), discrete noise with its slack inside delta"
    unit: str = "record"
    relation: str = "add or remove one record"
    sampling: str = "none"
    details: dict = field(default_factory=dict)
    not_covered: tuple[str, ...] = NOT_COVERED
    trust: str | None = None

    @property
    def sentence(self) -> str:
        """Returns the guarantee in words."""
        if self.guarantee != "formal":
            why = f"void: {self.noise}"
            if self.epsilon == float("inf"):
                why = "not private at all (epsilon infinite)"
            return f"NO PRIVACY GUARANTEE: {self.mechanism} is {why}."
        trust = f" {self.trust}" if self.trust else ""
        return (
            "Anyone who sees this release and everything else about all other records learns about "
            f"one record at most what ({at_least(self.epsilon)}, {at_least(self.delta)})-"
            f"differential privacy allows ({self.relation}). This release alone: others of the same "
            f"client compose with it.{trust}"
        )

    def as_dict(self) -> dict:
        """Returns the fields and the sentence, as cards and ledgers hold them.

        `trust` is there where somebody has to be trusted.
        """
        fields = asdict(self)
        if self.trust is None:
            del fields["trust"]
        return {**fields, "statement": self.sentence}


def at_least(value: float) -> str:
    """Returns a positive number with six digits, which is never below it but by its last bits.

    >>> at_least(4.198724805), at_least(3.0), at_least(1e-05)
    ('4.19873', '3', '1e-05')
    """
    text = f"{value:g}"
    if float(text) >= value * (1 - 1e-12):
        return text
    return f"{Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(value):g}"


def combined(statements: list[dict]) -> dict:
    """Returns {"epsilon_max", "guarantee"} of what was made from several releases.

    The guarantee is formal only if every release's is. Where somebody has to be trusted, `trust`
    has each sentence that says whom.

    Args:
        statements: As `Statement.as_dict` returns them, or as JSON has them.
    """
    formal = all(statement["guarantee"] == "formal" for statement in statements)
    largest = max(float(statement["epsilon"]) for statement in statements)
    claim = {"epsilon_max": largest, "guarantee": "formal" if formal else "none"}
    trust = {statement["trust"] for statement in statements if "trust" in statement}
    return {**claim, "trust": sorted(trust)} if trust else claim


def not_covered(statements: Iterable[dict], classifier: str = "") -> list[str]:
    """Returns what no guarantee of these releases, and of a model made from them, speaks of.

    Where there is no release, it is what no guarantee ever speaks of.

    Args:
        statements: Anything with a "not_covered", as `Statement.as_dict` returns it.
        classifier: The network of the model; empty where none is made.

    Example:
        >>> not_covered([{"not_covered": ["timing", "a"]}])[len(NOT_COVERED) :]
        ['a']
    """
    listed = list(NOT_COVERED)
    for statement in statements:
        listed += statement["not_covered"]
    return list(dict.fromkeys([*listed, *OF_NETWORK.get(classifier, ())]))
