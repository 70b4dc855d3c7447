"""The privacy statement that stands beside every released number (DESIGN rule 1)."""

from dataclasses import asdict, dataclass, field

NOT_COVERED = (
    "the locally fine-tuned model",
    "metrics computed on private records",
    "timing",
    "a person whose records lie at several clients or number more than one",
)


@dataclass(frozen=True)
class Statement:
    """Who is protected from what, at which price, and by whose arithmetic.

    epsilon, delta: the guarantee. mu: the same as Gaussian DP, where the mechanism has one.
    details: the mechanism's own parameters, among them L2 sensitivity and sigma of what is released, in its own units.
    """

    mechanism: str
    epsilon: float
    delta: float
    mu: float | None
    guarantee: str  # formal | none
    noise: str
    accountant: str = "exact Gaussian DP (mu), discrete noise with its slack inside delta"
    unit: str = "record"
    relation: str = "add or remove one record"
    sampling: str = "none"
    details: dict = field(default_factory=dict)
    not_covered: tuple[str, ...] = NOT_COVERED

    @property
    def sentence(self) -> str:
        if self.guarantee != "formal":
            why = (
                "not private at all (epsilon infinite)"
                if self.epsilon == float("inf")
                else f"void: {self.noise}"
            )
            return f"NO PRIVACY GUARANTEE: {self.mechanism} is {why}."
        return (
            "Anyone who sees this release and everything else about all other records learns about one record at most "
            f"what ({self.epsilon:g}, {self.delta:g})-differential privacy allows ({self.relation}). "
            "This release alone: others of the same client compose with it."
        )

    def as_dict(self) -> dict:
        return {**asdict(self), "statement": self.sentence}


def combined(statements: list[dict]) -> dict:
    """Returns {"epsilon_max", "guarantee"} of what was made from several releases: formal only if every one is.

    statements: as `Statement.as_dict` has them, or as JSON gives them back.
    """
    formal = all(statement["guarantee"] == "formal" for statement in statements)
    largest = max(float(statement["epsilon"]) for statement in statements)
    return {"epsilon_max": largest, "guarantee": "formal" if formal else "none"}
