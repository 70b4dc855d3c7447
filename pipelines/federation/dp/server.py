"""The server of federated DP-SGD: it averages what clients release, and says how much noise and how many steps follow.

All of it is post-processing of releases, or of them and public images.
"""

from dataclasses import dataclass, replace

from pipelines.blocks.dp import Dpsgd
from pipelines.federation.dp.local_steps import PROBING, Facts, following, measured
from pipelines.federation.dp.noise_control import next_factor
from pipelines.federation.dp.public import Public
from pipelines.federation.messages import Reply, Server, weighted_mean
from pipelines.training.tensors import State


@dataclass(frozen=True)
class DpServer(Server):
    """weights: the average over rounds, which is the model. latest: what each round begins with at the clients.
    factor: on their noise. tau: their steps. losses, accuracy: of `latest` on public images, where there are any."""

    latest: State
    settings: Dpsgd
    tau: int
    public: Public | None = None
    round: int = 0
    factor: float = 1.0
    losses: tuple[float, ...] = ()
    accuracy: float | None = None

    @property
    def sent(self) -> State:
        return self.latest

    @property
    def asked(self) -> dict[str, float | int]:
        return {"noise_factor": self.factor, "local_steps": self.tau}

    @property
    def told(self) -> dict[str, float]:
        public = {"public_loss": self.losses[-1], "public_accuracy": self.accuracy} if self.losses else {}
        return {**public, "next_noise_factor": self.factor, "next_local_steps": self.tau}


def start(weights: State, settings: Dpsgd, public: Public | None = None) -> DpServer:
    """public: the server's images, which noise control and most rules for local steps need."""
    return DpServer(weights, weights, settings, settings.local_steps, public)


def step(state: DpServer, replies: list[Reply]) -> DpServer:
    """The plain mean, for weights by size would tell the server the sizes; then its average over rounds, of all so far
    until that remembers as much as `averaging` does; then what follows for the next round's noise and steps."""
    latest, number, settings = weighted_mean(replies, [1.0] * len(replies)), state.round + 1, state.settings
    past = min(settings.averaging, (number - 1) / number)
    weights = {name: past * state.weights[name] + (1 - past) * latest[name] for name in latest}
    state = replace(state, weights=weights, latest=latest, round=number)
    if state.public:
        loss, accuracy = state.public.validate(latest)
        losses = (*state.losses, loss)
        factor = next_factor(settings, state.factor, list(losses))
        state = replace(state, losses=losses, accuracy=accuracy, factor=factor)
    return replace(state, tau=following(settings, _facts(state, replies)))


def _facts(state: DpServer, replies: list[Reply]) -> Facts:
    """What the rule may know; the budget of the client that has least left bounds the round."""
    told = [reply.payload.scalars for reply in replies]
    left = {"steps_left": min(one["left"] for one in told), "rounds_left": state.settings.rounds - state.round}
    seen = {}
    if state.public and state.settings.local_steps_rule in PROBING:
        seen = measured(*state.public.probe([*(reply.payload.arrays for reply in replies), state.latest]))
    size = sum(array.size for array in state.latest.values())
    most = {name: max(one[name] for one in told) for name in ("noise_multiplier", "clipping_norm")}
    return Facts(tau=state.tau, clients=len(replies), size=size, **left, **seen, **most)
