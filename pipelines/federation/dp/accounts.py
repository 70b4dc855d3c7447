"""Which account goes with which control of the noise."""

from pipelines.config.dp import Dpsgd
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.filtered_account import Filtered
from pipelines.federation.dp.noise_schedule import Scheduled
from pipelines.privacy.accounting import Steps

KINDS = {"const": Account, "scheduled": Scheduled, "falling_loss": Filtered, "plateau": Filtered}


def account(
    epsilon: float, delta: float, settings: Dpsgd, before: tuple[Steps, ...] = ()
) -> Account:
    return KINDS[settings.noise_control](epsilon, delta, settings, before)
