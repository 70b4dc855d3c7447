"""What a Gaussian release costs, and how much noise a budget needs. Pure functions, keyword-only.

Neighbouring relation everywhere: add or remove one record. mu is the Gaussian-DP parameter of Dong, Roth and Su:
sensitivity over noise standard deviation; it composes as a root of a sum of squares, adaptively and exactly when the
parameters are fixed in advance.
"""

import math
from functools import cache

from scipy.optimize import brentq
from scipy.special import log_ndtr

LARGEST_EPSILON = 30.0  # a larger finite epsilon is planned at 30: a stronger promise, and exp() stays finite
RDP_ORDERS = (*(2 + step / 2 for step in range(16)), *range(10, 65), 128, 256, 512)  # below 2 its series can diverge
CLASSIC_ORDERS = (1.1, *range(2, 200))  # the orders of DataLens' accountant


def gdp_delta(*, epsilon: float, mu: float) -> float:
    """delta(epsilon) of a mu-GDP mechanism (Balle and Wang 2018, Theorem 8)."""
    if mu == 0:
        return 0.0
    first, second = log_ndtr(-epsilon / mu + mu / 2), epsilon + log_ndtr(-epsilon / mu - mu / 2)
    if math.isinf(first):
        return 0.0
    return float(-math.exp(first) * math.expm1(second - first))


def gdp_epsilon(*, mu: float, delta: float) -> float:
    """The least epsilon >= 0 at which a mu-GDP mechanism is (epsilon, delta)-DP."""
    if math.isinf(mu):
        return math.inf
    if gdp_delta(epsilon=0.0, mu=mu) <= delta:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1
    return brentq(lambda epsilon: gdp_delta(epsilon=epsilon, mu=mu) - delta, 0.0, high, xtol=1e-12)


def gdp_mu(*, epsilon: float, delta: float) -> float:
    """The largest mu at which mu-GDP implies (epsilon, delta)-DP; infinite for an infinite epsilon."""
    if math.isinf(epsilon):
        return math.inf
    epsilon = min(epsilon, LARGEST_EPSILON)
    return brentq(lambda mu: gdp_delta(epsilon=epsilon, mu=mu) - delta, min(1e-9, delta), 50.0, xtol=1e-13)


def compose(mus: list[float]) -> float:
    """mu of several releases on the same records, each fixed before the first."""
    return math.sqrt(sum(mu * mu for mu in mus))


def total_epsilon(*, costs: list[dict], delta: float) -> float:
    """Epsilon at `delta` of several releases of the same records together.

    A cost is {"kind": "gaussian", "mu"}, {"kind": "sampled_gaussian", "noise_multiplier", "sampling_rate", "steps"} or
    {"kind": "none"} for a release without privacy. Gaussian ones alone compose exactly; with sampled ones among them
    the privacy loss distributions do (dp-accounting). Beyond LARGEST_EPSILON, for which the lattices of discrete noise
    were cut, no claim is made: infinity.
    """
    if any(cost["kind"] == "none" for cost in costs):
        return math.inf
    mu = compose([cost["mu"] for cost in costs if cost["kind"] == "gaussian"])
    sampled = [cost for cost in costs if cost["kind"] == "sampled_gaussian" and cost["steps"] > 0]
    if not sampled:
        total = gdp_epsilon(mu=mu, delta=delta)
        return total if total <= LARGEST_EPSILON else math.inf
    accounting = _dp_accounting()
    accountant = accounting.pld.PLDAccountant()
    if mu > 0:
        accountant.compose(accounting.GaussianDpEvent(1 / mu))
    for cost in sampled:
        accountant.compose(_steps(accounting, cost["noise_multiplier"], cost["sampling_rate"], cost["steps"]))
    total = accountant.get_epsilon(delta)
    return total if total <= LARGEST_EPSILON else math.inf


def classic_epsilon(*, mu: float, delta: float) -> tuple[float, float]:
    """(epsilon, order) as the DataLens code reports it: RDP with the 2017 conversion over its orders.

    Shown beside the exact value so that a reader can compare with the papers; never the claim.
    """
    return min((order * mu * mu / 2 + math.log(1 / delta) / (order - 1), order) for order in CLASSIC_ORDERS)


def rounding_slack(*, epsilon: float, sigma: float, draws: int) -> float:
    """delta added by a discrete Gaussian where the accounting assumes a continuous one.

    An integer sum plus a rounded continuous Gaussian is post-processing of the Gaussian mechanism, hence mu-GDP. The
    discrete Gaussian differs from the rounded one by at most 1 / (24 sigma^2) in total variation per draw, for
    sigma >= 8 lattice steps (half the integral of |g''| / 24, with the sum's error; checked by brute force in the
    tests). Both worlds move by that: delta grows by (1 + e^epsilon) draws / (24 sigma^2).
    """
    if sigma < 8:
        return 1.0
    return (1 + math.exp(epsilon)) * draws / (24 * sigma * sigma)


@cache  # seconds each; clients with equal budgets ask the same
def sampled_gaussian_epsilon(*, noise_multiplier: float, sampling_rate: float, steps: int, delta: float) -> float:
    """epsilon of `steps` Poisson-sampled Gaussian steps, by RDP: the running stop rule."""
    return _spent(_dp_accounting().rdp.RdpAccountant(RDP_ORDERS), noise_multiplier, sampling_rate, steps, delta)


@cache
def sampled_gaussian_epsilon_pld(*, noise_multiplier: float, sampling_rate: float, steps: int, delta: float) -> float:
    """The same by privacy loss distributions: the final figure."""
    return _spent(_dp_accounting().pld.PLDAccountant(), noise_multiplier, sampling_rate, steps, delta)


@cache
def sampled_gaussian_noise(*, epsilon: float, sampling_rate: float, steps: int, delta: float) -> float:
    """The least noise multiplier whose `steps` sampled steps stay within (epsilon, delta) by RDP; 0 if infinite."""
    if math.isinf(epsilon):
        return 0.0
    accounting = _dp_accounting()
    return accounting.calibrate_dp_mechanism(
        make_fresh_accountant=lambda: accounting.rdp.RdpAccountant(RDP_ORDERS),
        make_event_from_param=lambda noise: _steps(accounting, noise, sampling_rate, steps),
        target_epsilon=min(epsilon, LARGEST_EPSILON),
        target_delta=delta,
        bracket_interval=accounting.LowerEndpointAndGuess(0.0, 1.0),
        tol=1e-4,
    )


def _spent(accountant, noise_multiplier: float, sampling_rate: float, steps: int, delta: float) -> float:
    if steps == 0:
        return 0.0
    if noise_multiplier == 0:
        return math.inf
    accountant.compose(_steps(_dp_accounting(), noise_multiplier, sampling_rate, steps))
    return accountant.get_epsilon(delta)


def _steps(accounting, noise_multiplier: float, sampling_rate: float, steps: int):
    step = accounting.PoissonSampledDpEvent(sampling_rate, accounting.GaussianDpEvent(noise_multiplier))
    return accounting.SelfComposedDpEvent(step, steps)


def _dp_accounting():
    """Imported where used: it takes two seconds, which the stages without DP-SGD need not pay."""
    import dp_accounting
    import dp_accounting.pld
    import dp_accounting.rdp

    return dp_accounting
