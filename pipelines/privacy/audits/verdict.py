"""What an audit concludes: a claim, and the most that an attack could prove against it."""

from dataclasses import dataclass, field

from pipelines.privacy import accounting


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A claimed guarantee beside the lower bound that an attack measured, at one delta.

    A lower bound above the claim is a caught bug. One below it proves nothing: an audit passed is no proof.
    evidence: further numbers worth showing (AUC, counts, the assumption-free epsilon).
    """

    mu_claimed: float
    mu_lower: float
    epsilon_claimed: float
    epsilon_lower: float
    delta: float
    evidence: dict = field(default_factory=dict)
    refuted: bool = False  # by something other than the two numbers

    @property
    def passed(self) -> bool:
        within = self.mu_lower <= self.mu_claimed and self.epsilon_lower <= self.epsilon_claimed
        return within and not self.refuted

    def as_dict(self) -> dict:
        names = ("mu_claimed", "mu_lower", "epsilon_claimed", "epsilon_lower", "passed", "delta")
        return {**{name: getattr(self, name) for name in names}, **self.evidence}


def of_mu(*, mu_claimed: float, mu_lower: float, delta: float, evidence: dict) -> Verdict:
    """From a bound on mu; both epsilons by the exact conversion at `delta`."""
    claimed, lower = (accounting.gdp_epsilon(mu=mu, delta=delta) for mu in (mu_claimed, mu_lower))
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
    """From a bound on epsilon at `delta`; mu_lower is what a Gaussian mechanism would need to leak so much."""
    return Verdict(
        mu_claimed=mu_claimed,
        mu_lower=accounting.gdp_mu(epsilon=epsilon_lower, delta=delta)
        if epsilon_lower > 0
        else 0.0,
        epsilon_claimed=accounting.gdp_epsilon(mu=mu_claimed, delta=delta),
        epsilon_lower=epsilon_lower,
        delta=delta,
        evidence=evidence,
        refuted=refuted,
    )
