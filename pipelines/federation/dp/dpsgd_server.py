"""The server of federated DP-SGD: it averages releases, and plans the next round's noise and steps.

All of it is post-processing of what clients released, or of that and public images.
"""

import math
from dataclasses import dataclass, field, replace

from pipelines.config.dp import Dpsgd
from pipelines.config.values import CLIPPING_NORMS
from pipelines.federation.core.control_variates import moved, named, parted, zeros
from pipelines.federation.core.messages import Reply, weighted_mean
from pipelines.federation.dp.local_steps import PROBING, Facts, following, measured
from pipelines.federation.dp.noise_schedule import next_factor
from pipelines.federation.dp.public import Public, ValidatedServer
from pipelines.training.tensors import State

LEAST_SCORED = 500  # public images: fewer would say little of a loss that falls by a thousandth


@dataclass(frozen=True, kw_only=True)
class DpServer(ValidatedServer):
    """Holds what the server of DP-SGD keeps between rounds.

    Attributes:
        weights: the average over rounds, which is the model.
        latest: what each round begins with at the clients.
        settings: those of the run.
        clients: how many there are, whether they answer or not.
        tau: the steps of each client in the next round.
        round: how many are done.
        factor: on the clients' first noise multiplier.
        control: SCAFFOLD's variate, where it is asked for.
        norm: the clipping norm of `proxy`.
    """

    latest: State
    settings: Dpsgd
    clients: int
    tau: int
    round: int = 0
    factor: float = 1.0
    control: State = field(default_factory=dict)
    norm: float | None = None

    @property
    def broadcast(self) -> State:
        """Returns the latest weights and the server's variate."""
        return {**self.latest, **named(self.control)}

    @property
    def instructions(self) -> dict[str, float | int]:
        """Returns how much noise and how many steps the clients should take."""
        norm = {} if self.norm is None else {"clipping_norm": self.norm}
        return {"noise_factor": self.factor, "local_steps": self.tau, **norm}

    @property
    def metrics(self) -> dict[str, float]:
        """Returns what public images say of the model, and the plan of the next round."""
        plan = {"next_noise_factor": self.factor, "next_local_steps": self.tau}
        return {**super().metrics, **plan}


def start(
    weights: State, settings: Dpsgd, public: Public | None = None, clients: int = 1
) -> DpServer:
    """Returns the server's state before the first round.

    Each round's model is scored on no more public images than all lots of the first round hold, for a
    forward pass costs an eighth of a clipped gradient; but on LEAST_SCORED where there are as many.

    Args:
        weights: of the first model.
        settings: those of the run.
        public: the server's images, which noise control, `proxy` and most rules for local steps need.
        clients: how many there are, whether they answer or not.
    """
    control = zeros(weights) if settings.control_variates else {}
    scored = max(LEAST_SCORED, math.ceil(clients * settings.local_steps * settings.expected_lot))
    first = DpServer(
        weights,
        public,
        scored=scored,
        latest=weights,
        settings=settings,
        clients=clients,
        tau=settings.local_steps,
        control=control,
    )
    return replace(first, norm=_norm(first))


def step(state: DpServer, replies: list[Reply]) -> DpServer:
    """Returns the state after a round.

    The mean is plain, for weights by size would tell the server the sizes. The model is its average
    over rounds: of all so far, until that remembers as much as `averaging` does.
    """
    settings = state.settings
    latest, change = parted(weighted_mean(replies, [1.0] * len(replies)))
    number = state.round + 1
    past = min(settings.averaging, (number - 1) / number)
    weights = {name: past * state.weights[name] + (1 - past) * latest[name] for name in latest}
    state = replace(state, weights=weights, latest=latest, round=number).validated(weights)
    if state.public:
        factor = next_factor(settings, state.factor, list(state.losses))
        state = replace(state, factor=factor, norm=_norm(state))
    if settings.control_variates:
        state = replace(state, control=moved(state.control, change, len(replies) / state.clients))
    return replace(state, tau=following(settings, _facts(state, replies)))


def _norm(state: DpServer) -> float | None:
    """Returns C by `proxy`: the quantile of the gradient norms of public images, within clients' range.

    None where it is no number: the clients go back to their first.
    """
    if state.settings.clipping != "proxy" or not state.public:
        return None
    norm = state.public.gradient_norm(state.latest, state.settings.clipping_quantile)
    least, most = CLIPPING_NORMS
    return None if math.isnan(norm) else min(max(norm, least), most)


def _facts(state: DpServer, replies: list[Reply]) -> Facts:
    """Returns what the rule for local steps may know.

    The budget of the client that has least left bounds the round.
    """
    scalars = [reply.payload.scalars for reply in replies]
    probed = {}
    if state.public and state.settings.local_steps_rule in PROBING:
        released = [parted(reply.payload.arrays)[0] for reply in replies]
        probed = measured(*state.public.probe([*released, state.latest]))
    return Facts(
        tau=state.tau,
        steps_left=min(values["left"] for values in scalars),
        rounds_left=state.settings.rounds - state.round,
        clients=len(replies),
        size=sum(array.size for array in state.latest.values()),
        noise_multiplier=max(values["noise_multiplier"] for values in scalars),
        clipping_norm=max(values["clipping_norm"] for values in scalars),
        **probed,
    )
