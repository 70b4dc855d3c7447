"""Computes what releases cost, and how much noise a budget needs.

All functions are pure and take keywords only. The neighbouring relation is everywhere: add or
remove one record.

gdp                 Gaussian releases, exactly
renyi               the Rényi curve of the Poisson-sampled Gaussian
best_order          the Rényi order at which releases cost least
schedules           what many sampled steps cost, each with its own noise
calibration         how much noise, or how many steps, a budget allows
loss_distributions  the privacy loss of sampled steps, on a lattice
pld                 what steps cost on the way
filters             noise chosen from private outcomes
totals              all releases together

>>> epsilon = gdp_epsilon(mu=0.5, delta=1e-5)
>>> round(epsilon, 3), round(gdp_mu(epsilon=epsilon, delta=1e-5), 3)
(1.993, 0.5)
>>> steps = Steps(noise_multiplier=1.1, sampling_rate=0.01, count=1000)
>>> round(schedule_epsilon(schedule=[steps], delta=1e-5), 3)
1.712
>>> steps_for(epsilon=1.712, delta=1e-5, sampling_rate=0.01, noise_multiplier=1.1)
1000
"""

from pipelines.privacy.accounting.calibration import most_steps, scale_for, steps_for
from pipelines.privacy.accounting.filters import RenyiFilter, planned_order
from pipelines.privacy.accounting.gdp import (
    LARGEST_EPSILON,
    classic_epsilon,
    compose,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    rounding_slack,
)
from pipelines.privacy.accounting.pld import NOTHING, Losses
from pipelines.privacy.accounting.renyi import ORDERS, conversion, rdp_epsilon, sampled_gaussian_rdp
from pipelines.privacy.accounting.schedules import (
    Steps,
    on_one_lot,
    schedule_epsilon,
    schedule_epsilon_gdp,
    schedule_epsilon_pld,
    schedule_rdp,
)
from pipelines.privacy.accounting.totals import total_epsilon

__all__ = [
    "LARGEST_EPSILON",
    "NOTHING",
    "ORDERS",
    "Losses",
    "RenyiFilter",
    "Steps",
    "classic_epsilon",
    "compose",
    "conversion",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "most_steps",
    "on_one_lot",
    "planned_order",
    "rdp_epsilon",
    "rounding_slack",
    "sampled_gaussian_rdp",
    "scale_for",
    "schedule_epsilon",
    "schedule_epsilon_gdp",
    "schedule_epsilon_pld",
    "schedule_rdp",
    "steps_for",
    "total_epsilon",
]
