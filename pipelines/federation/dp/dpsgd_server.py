"""The server of federated DP-SGD: it averages what clients release, and says how much noise and how many steps follow.

All of it is post-processing of releases, or of them and public images.
"""

import math
from dataclasses import dataclass, field, replace

from pipelines.config.dp import Dpsgd
from pipelines.config.values import CLIPPING_NORMS
from pipelines.federation.core.control_variates import moved, named, parted, zeros
from pipelines.federation.core.messages import Reply, weighted_mean
from pipelines.federation.dp.local_steps import PROBING, Facts, following, measured
from pipelines.federation.dp.noise_control import next_factor
from pipelines.federation.dp.public import Public
from pipelines.federation.dp.watched import Watched
from pipelines.training.tensors import State

LEAST_SCORED = 500  # public images: fewer would say little of a loss that falls by a thousandth


@dataclass(frozen=True, kw_only=True)
class DpServer(Watched):
    """weights: the average over rounds, which is the model. latest: what each round begins with at the clients.
    factor: on their noise. tau: their steps. control: SCAFFOLD's variate, where it is asked for. norm: `proxy`'s."""

    latest: State
    settings: Dpsgd
    clients: int
    tau: int
    round: int = 0
    factor: float = 1.0
    control: State = field(default_factory=dict)
    norm: float | None = None

    @property
    def sent(self) -> State:
        return {**self.latest, **named(self.control)}

    @property
    def asked(self) -> dict[str, float | int]:
        norm = {} if self.norm is None else {"clipping_norm": self.norm}
        return {"noise_factor": self.factor, "local_steps": self.tau, **norm}

    @property
    def told(self) -> dict[str, float]:
        return {**super().told, "next_noise_factor": self.factor, "next_local_steps": self.tau}


def start(
    weights: State, settings: Dpsgd, public: Public | None = None, clients: int = 1
) -> DpServer:
    """public: the server's images, which noise control, `proxy` and most rules for local steps need. Each round's model
    is scored on no more of them than all lots of the first round hold, for a forward pass costs an eighth of a clipped
    gradient, but on LEAST_SCORED where there are as many. clients: how many there are, whether they answer or not."""
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
    """The plain mean, for weights by size would tell the server the sizes; then its average over rounds, of all so far
    until that remembers as much as `averaging` does; then what follows for the next round."""
    latest, change = parted(weighted_mean(replies, [1.0] * len(replies)))
    number, settings = state.round + 1, state.settings
    past = min(settings.averaging, (number - 1) / number)
    weights = {name: past * state.weights[name] + (1 - past) * latest[name] for name in latest}
    state = replace(state, weights=weights, latest=latest, round=number).watching(weights)
    if state.public:
        state = replace(
            state, factor=next_factor(settings, state.factor, list(state.losses)), norm=_norm(state)
        )
    if settings.control_variates:
        state = replace(state, control=moved(state.control, change, len(replies) / state.clients))
    return replace(state, tau=following(settings, _facts(state, replies)))


def _norm(state: DpServer) -> float | None:
    """C by `proxy`: the quantile of the norms that public images' gradients have, as far as a client lets it in. None
    where it is no number: the clients go back to their first."""
    if state.settings.clipping != "proxy" or not state.public:
        return None
    norm = state.public.gradient_norm(state.latest, state.settings.clipping_quantile)
    least, most = CLIPPING_NORMS
    return None if math.isnan(norm) else min(max(norm, least), most)


def _facts(state: DpServer, replies: list[Reply]) -> Facts:
    """What the rule may know; the budget of the client that has least left bounds the round."""
    told = [reply.payload.scalars for reply in replies]
    left = {
        "steps_left": min(one["left"] for one in told),
        "rounds_left": state.settings.rounds - state.round,
    }
    seen = {}
    if state.public and state.settings.local_steps_rule in PROBING:
        own = [parted(reply.payload.arrays)[0] for reply in replies]
        seen = measured(*state.public.probe([*own, state.latest]))
    size = sum(array.size for array in state.latest.values())
    most = {name: max(one[name] for one in told) for name in ("noise_multiplier", "clipping_norm")}
    return Facts(tau=state.tau, clients=len(replies), size=size, **left, **seen, **most)
