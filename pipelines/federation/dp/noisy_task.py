"""What a noisy algorithm is given: private records, and each client's account and noise."""

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field

from torch import nn

from pipelines.datasets.labelled_images import Images
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.public import Public
from pipelines.privacy.noise import Noise
from pipelines.training.fixed_features import Fixed
from pipelines.training.tensors import State, state_of


@dataclass(frozen=True)
class NoisyTask:
    """Holds what a noisy run trains on, and where it begins.

    Attributes:
        build: makes a fresh network, the same each time.
        data: each client's private records; of a server between machines, something with a length.
        accounts: each client's budget. A server between machines has none.
        sources: where each client's noise comes from. A server between machines has none.
        public: the server's images, which are no client's, or None. Clients have none.
        weights: where the run starts, or None for a fresh network.
        fixed: which fixed features a head is trained on; None: scattering.
    """

    build: Callable[[], nn.Module]
    data: Mapping[str, Images | Sized]
    accounts: Mapping[str, Account] = field(default_factory=dict)
    sources: Mapping[str, Noise] = field(default_factory=dict)
    public: Public | None = None
    weights: State | None = None
    fixed: Fixed | None = None

    def start(self) -> State:
        """Returns the weights before the first round."""
        return state_of(self.build()) if self.weights is None else self.weights
