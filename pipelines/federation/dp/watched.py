"""The server's state in noisy training: what public images say of the model, in the log and to who follows it."""

from dataclasses import dataclass, replace

from pipelines.federation.core.messages import Server
from pipelines.federation.dp.public import Public
from pipelines.training.tensors import State


@dataclass(frozen=True)
class Watched(Server):
    """losses, accuracy: of each round's model on public images, where there are any, on `scored` of them at most."""

    public: Public | None = None
    scored: int | None = None
    losses: tuple[float, ...] = ()
    accuracy: float | None = None

    @property
    def told(self) -> dict[str, float]:
        return (
            {"public_loss": self.losses[-1], "public_accuracy": self.accuracy}
            if self.losses
            else {}
        )

    def watching(self, weights: State) -> "Watched":
        if not self.public:
            return self
        loss, accuracy = self.public.validate(weights, self.scored)
        return replace(self, losses=(*self.losses, loss), accuracy=accuracy)
