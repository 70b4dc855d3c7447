"""What one client of a noisy run has at home: its network, its account, its noise. All of it follows from its own
parameters."""

from collections.abc import Callable
from functools import partial

from torch import nn

from pipelines import seeds
from pipelines.config import Params
from pipelines.config.values import Block
from pipelines.federation import noisy_run
from pipelines.federation.dp.account import Account
from pipelines.privacy import noise
from pipelines.training import classifier
from pipelines.training.tensors import device


def network(params: Params, dataset: str, settings: Block) -> Callable[[], nn.Module]:
    """Builds the run's network, freshly initialised, the same each time."""
    profile = params.profiles[dataset]
    profile = profile.model_copy(update={"classifier": settings.network or profile.classifier})
    seed = seeds.derive(params.seed, "init", dataset)
    return partial(
        classifier.new, profile, seed, device(params.device), activation=settings.activation
    )


def account(params: Params, client: str, settings: Block) -> Account:
    return noisy_run.family(settings).account(*params.budget(client), settings)


def source(params: Params, dataset: str, algorithm: str, client: str) -> noise.Noise:
    test_seed = seeds.derive(params.seed, "test noise", dataset, algorithm, client)
    return noise.source(params.privacy.noise, test_seed)
