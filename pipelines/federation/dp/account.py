"""One client's account of noisy steps: how much noise its budget needs, and how many steps it affords.

Each step is accounted before it is taken, by RDP of the Poisson-sampled Gaussian, add or remove one
record. PLD's figures stand beside it, after each round and at the end. Noise is fixed before the first
step, so the least over orders is a valid claim. Where it is not fixed, see `filtered_account`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.config.dp import Dpsgd
from pipelines.federation.core.messages import ScalarRange
from pipelines.federation.dp.clipping import RANGE
from pipelines.privacy import accounting
from pipelines.privacy.accounting import NOTHING, Losses, Steps
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.privacy.statement import NOT_COVERED, Statement

FLOAT_NOISE = (
    "operating system entropy through OpenSSL; "
    "normal in float64, rounded to a grid of a thousandth of its deviation"
)
CANCELLING = "a server that sends weights under which floating-point sums cancel (docs/privacy.md, pitfall 21)"
START = "a Gaussian release (dp_moments) to start from, then "
# Of what a ledger enters for any noisy run. The budgets stand in the claim and in the facts of the
# run (`noisy_release`).
RUN_IDENTITY = Identity(
    consequences=frozenset({"before", "noise", "noise_multiplier", "steps"}),
    searched=frozenset({"epsilon"}),  # the claim: its noise was found by bisection
    neutral={
        "start": None,
        "settings.activation": "relu",
        "settings.momentum": 0.0,
        "settings.network": None,
        "settings.warm_start": None,
    },
)


def _norm_limits(settings: Dpsgd, sizes: tuple[int, int]) -> tuple[float, float]:
    # auto_s has the norm 1, whatever the settings say
    return 0.0, max(1.0, settings.clipping_norm) * RANGE


# An infinite epsilon is that of a run without noise, and an infinite ratio that of one without
# deviation. The account knows noise and rates alone; the ratio is of released gradients.
ACCOUNT_TELLS = {
    "epsilon_spent": ScalarRange(float, 0.0, math.inf),
    "epsilon_by_pld": ScalarRange(float, 0.0, math.inf),
    "signal_to_noise": ScalarRange(float, -1.0, math.inf),
    "noise_multiplier": ScalarRange(float, 0.0, 1e12),
    "clipping_norm": ScalarRange(float, 0.0, 1e12, _norm_limits),
}


@dataclass
class Account:
    """Holds what one client may spend, and what it has.

    The first noise multiplier is the settings' where they name one, and the client leaves when its
    budget is gone. Else it is the least with which all planned steps can be afforded.

    Args:
        epsilon, delta: the client's budget.
        settings: those of the run.
        before: what the run spends ahead of its first step, of the same budget.
        steps: taken so far.
        losses: the running privacy loss distribution.

    Attributes:
        first: the noise multiplier that was planned.
        noise_multiplier: that of the step at hand, of all that the step lets out together as one
            release.
        affordable: the steps that the budget buys.

    Raises:
        ValueError: `before` leaves nothing of the budget.
    """

    epsilon: float
    delta: float
    settings: Dpsgd
    before: tuple[Steps, ...] = ()
    steps: int = 0
    losses: Losses = NOTHING

    mechanism = "DP-SGD (Poisson-sampled Gaussian on clipped gradients)"
    accountant = "RDP of the sampled Gaussian"
    by = staticmethod(accounting.schedule_epsilon)

    def __post_init__(self):
        if math.isfinite(self.epsilon):
            self.epsilon = min(self.epsilon, accounting.LARGEST_EPSILON)
        self._check_before()
        for steps in self.before:
            self.losses = self.losses.then(steps)
        budget = {"epsilon": self.epsilon, "delta": self.delta, "by": self.by}
        planned = tuple(self.scheduled(1.0, self.planned))
        asked = getattr(self.settings, "noise_multiplier", None)
        self.first = asked or accounting.scale_for(**budget, schedule=planned, before=self.before)
        self.noise_multiplier = self.first
        self.affordable = accounting.most_steps(**budget, first=self._up_to, at_most=self.planned)

    def check_released(self, count: int) -> None:
        """Checks that a step can release so many numbers. Float noise serves any number of them.

        Args:
            count: The number of weights of the run's network.
        """

    def _check_before(self) -> None:
        if not self.before or math.isinf(self.epsilon):
            return
        if self._epsilon_of(self.before) >= self.epsilon:
            raise ValueError(
                f"What comes before the first step leaves nothing of epsilon {self.epsilon:g}."
            )

    @property
    def sampling_rate(self) -> float:
        """Returns the probability with which a step draws a record."""
        return self.settings.sampling_rate

    @property
    def planned(self) -> int:
        """Returns the steps at most.

        A rule for local steps deals out those that given noise leaves, or those that the noise was
        planned for: then every client has as many, whatever its budget.
        """
        settings = self.settings
        dealt = settings.local_steps_rule != "fixed" and settings.noise_multiplier is not None
        return settings.rounds * (settings.most_local_steps if dealt else settings.local_steps)

    @property
    def left(self) -> int:
        """Returns the steps that the budget still buys at the first noise."""
        return max(0, self.affordable - self.steps)

    def scheduled(self, first: float, count: int) -> list[Steps]:
        """Returns the first `count` steps, where the run begins with noise multiplier `first`."""
        return [Steps(first, self.sampling_rate, count)]

    def take(self, asked: int, factor: float = 1.0) -> int:
        """Enters steps before they are taken.

        Args:
            asked: how many steps the server asks for.
            factor: on the first noise multiplier; an account with fixed noise takes no notice.

        Returns:
            How many of them the budget allows.
        """
        taken = max(0, min(asked, self.left))
        self._enter(taken)
        return taken

    @property
    def running(self) -> dict[str, float]:
        """Returns the figures after each round. Both know noise and rates alone: free to send."""
        spent = self.epsilon_spent
        # of less noise the distributions would fill the memory
        costed = spent <= accounting.LARGEST_EPSILON
        by_pld = self.losses.epsilon(self.delta) if costed else math.inf
        return {"epsilon_spent": spent, "epsilon_by_pld": by_pld}

    @property
    def taken(self) -> list[Steps]:
        """Returns the steps so far, and what came before them."""
        return self._up_to(self.steps)

    @property
    def epsilon_spent(self) -> float:
        """Returns epsilon so far, by the rule that stops the run."""
        return math.inf if self.leaks else self._epsilon_of(self.taken)

    def spent(self) -> dict:
        """Returns what happened.

        Beside the figure of the rule that stopped the run stands PLD's, which is no claim where the
        noise was chosen on the way.
        """
        spent = self.epsilon_spent
        by_pld = self._by_pld(self.taken, spent)
        return {"steps": self.steps, "epsilon_spent": spent, "epsilon_by_pld": by_pld}

    @property
    def plan(self) -> list[Steps]:
        """Returns all affordable steps, as planned, and what comes before them."""
        return self._up_to(self.affordable)

    @property
    def claim(self) -> float:
        """Returns the epsilon of the whole run."""
        return self._epsilon_of(self.plan)

    @property
    def cost(self) -> dict:
        """Returns the cost as the ledger enters it."""
        return {"kind": "sampled_gaussian", "schedule": [list(steps) for steps in self.plan]}

    @property
    def details(self) -> dict:
        """Returns the statement's own facts."""
        return {"epsilon_by_pld_as_planned": self._by_pld(self.plan, self._epsilon_of(self.plan))}

    @property
    def leaks(self) -> bool:
        """Returns whether something private leaves beside the account, which voids it."""
        return self.settings.clipping == "nonprivate_oracle"

    def statement(
        self, noise: Noise, delta: float | None = None, *, details: bool = True
    ) -> Statement:
        """Returns what the run will have spent when all affordable steps are taken, as planned.

        PLD's figure stands beside it.

        Args:
            noise: where the client's noise comes from.
            delta: the client's own, where `before` needed a part of it.
            details: False leaves `details` out, of which PLD's figure takes seconds. They follow from
                the rest, so no ledger tells releases apart by them.
        """
        source = FLOAT_NOISE if noise.guarantee == "formal" else noise.source
        rate = self.sampling_rate
        epsilon = math.inf if self.leaks else self.claim
        claimed = self.first and epsilon <= accounting.LARGEST_EPSILON
        return Statement(
            mechanism=f"{START if self.before else ''}{self.mechanism}",
            epsilon=epsilon,
            delta=delta or self.delta,
            mu=None,
            guarantee=noise.guarantee if claimed else "none",
            noise=f"{source}; before it {noise.source}" if self.before else source,
            accountant=self.accountant,
            sampling=f"Poisson, rate {rate:g}" if rate < 1 else "none",
            not_covered=(*NOT_COVERED, CANCELLING),
            details={
                **(self.details if details else {}),
                "noise_multiplier": self.first,
                "steps": self.affordable,
                "before": [list(steps) for steps in self.before],
                "settings": self.settings.model_dump(),
            },
        )

    def _enter(self, count: int) -> None:
        self.steps += count
        self.losses = self.losses.then(self._logged(count))

    def _now(self, count: int) -> Steps:
        return Steps(self.noise_multiplier, self.sampling_rate, count)

    def _logged(self, count: int) -> Steps:
        """Returns the steps as they enter the running PLD."""
        return self._now(count)

    def _up_to(self, count: int) -> list[Steps]:
        return [*self.before, *self.scheduled(self.first, count)]

    def _epsilon_of(self, schedule: Sequence[Steps]) -> float:
        return self.by(schedule=schedule, delta=self.delta)

    def _by_pld(self, schedule: list[Steps], epsilon: float) -> float:
        """Returns PLD's epsilon, or infinity where the account's own figure is beyond any use.

        The distributions of so little noise would fill the memory.
        """
        if epsilon > accounting.LARGEST_EPSILON:
            return math.inf
        return accounting.schedule_epsilon_pld(schedule=schedule, delta=self.delta)
