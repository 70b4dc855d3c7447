"""Says what an audit concludes: a claim, and the most that an attack could prove against it.

>>> verdict = of_mu(mu_claimed=0.5, mu_lower=0.4, delta=1e-5, evidence={})
>>> verdict.passed, round(verdict.epsilon_claimed, 3)
(True, 1.993)
"""

from dataclasses import dataclass, field

from pipelines.privacy import accounting


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Holds a claimed guarantee beside the lower bound that an attack measured, at one delta.

    A lower bound above the claim is a caught bug. One below it proves nothing: an audit passed is
    no proof.

    Attributes:
        mu_claimed, mu_lower: The claim and the bound as mu of Gaussian DP.
        epsilon_claimed, epsilon_lower: The claim and the bound as epsilon at delta.
        delta: The delta of both.
        evidence: Further numbers worth showing (AUC, counts, the assumption-free epsilon).
        refuted: True if something other than the two numbers refutes the claim.
    """

    mu_claimed: float
    mu_lower: float
    epsilon_claimed: float
    epsilon_lower: float
    delta: float
    evidence: dict = field(default_factory=dict)
    refuted: bool = False

    @property
    def passed(self) -> bool:
        """Returns True if the attack proved nothing above the claim."""
        within = self.mu_lower <= self.mu_claimed and self.epsilon_lower <= self.epsilon_claimed
        return within and not self.refuted

    def as_dict(self) -> dict:
        """Returns the figures and the evidence, as audit.json holds them."""
        names = ("mu_claimed", "mu_lower", "epsilon_claimed", "epsilon_lower", "passed", "delta")
        return {**{name: getattr(self, name) for name in names}, **self.evidence}


def of_mu(*, mu_claimed: float, mu_lower: float, delta: float, evidence: dict) -> Verdict:
    """Returns the verdict of a bound on mu; both epsilons are by the exact conversion.

    Args:
        mu_claimed: The claim.
        mu_lower: The bound that the attack measured.
        delta: The delta of both epsilons.
        evidence: Further numbers worth showing.
    """
    claimed = accounting.gdp_epsilon(mu=mu_claimed, delta=delta)
    lower = accounting.gdp_epsilon(mu=mu_lower, delta=delta)
    return Verdict(
        mu_claimed=mu_claimed,
        mu_lower=mu_lower,
        epsilon_claimed=claimed,
        epsilon_lower=lower,
        delta=delta,
        evidence=evidence,
    )


def of_epsilon(
    *, mu_claimed: float, epsilon_lower: float, delta: float, evidence: dict, refuted: bool = False
) -> Verdict:
    """Returns the verdict of a bound on epsilon.

    Its mu_lower is what a Gaussian mechanism would need to leak so much.

    Args:
        mu_claimed: The claim.
        epsilon_lower: The bound that the attack measured.
        delta: The delta of both epsilons.
        evidence: Further numbers worth showing.
        refuted: True if something other than the two numbers refutes the claim.
    """
    mu_lower = 0.0
    if epsilon_lower > 0:
        mu_lower = accounting.gdp_mu(epsilon=epsilon_lower, delta=delta)
    return Verdict(
        mu_claimed=mu_claimed,
        mu_lower=mu_lower,
        epsilon_claimed=accounting.gdp_epsilon(mu=mu_claimed, delta=delta),
        epsilon_lower=epsilon_lower,
        delta=delta,
        evidence=evidence,
        refuted=refuted,
    )
