"""What releases cost, and how much noise a budget needs. Pure functions, keyword-only.

Neighbouring relation everywhere: add or remove one record.

gdp: Gaussian releases, exactly. renyi: the Rényi curve of the Poisson-sampled Gaussian. schedules: many sampled steps,
each with its own noise, and calibration both ways. losses: what they cost on the way. filters: noise chosen from
private outcomes. totals: all together.
"""

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
    most_steps,
    on_one_lot,
    scale_for,
    schedule_epsilon,
    schedule_epsilon_gdp,
    schedule_epsilon_pld,
    schedule_rdp,
    steps_for,
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
