"""What a joint noisy run starts from: a classifier trained on images that every client released for it.

Released, with its sensitivity and relation: what `dp_moments` releases, by a share of the client's mu squared. It is
accounted as the first step of the run that follows: Gaussian noise of multiplier 1 / mu on a sum over all records, at
the delta that the lattice of its noise leaves. The training is post-processing.
"""

from torch import nn

from pipelines import seeds
from pipelines.config.data import Augmentation
from pipelines.config.generators import DpMoments, WarmStart
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps
from pipelines.privacy.discrete_gaussian import SLACK_SHARE, Budget
from pipelines.privacy.noise import Noise
from pipelines.synthesis import dp_moments
from pipelines.synthesis.base import Plan, Space
from pipelines.training import classifier
from pipelines.training.tensors import State, state_of


def plan(settings: DpMoments, epsilon: float, delta: float, share: float, space: Space) -> Plan:
    """dp_moments at the epsilon that the share is worth alone, so that its settings for little budget hold."""
    worth = accounting.gdp_epsilon(mu=Budget(epsilon, delta, share).mu, delta=continuous(delta))
    return dp_moments.plan(settings, Budget(worth, delta), space)


def continuous(delta: float) -> float:
    """What is left of delta once the lattice of the images' noise has its part."""
    return delta * (1 - SLACK_SHARE)


def steps(plan: Plan) -> tuple[Steps, ...]:
    """What the release costs, as steps of the run's account."""
    return (Steps(1 / plan.statement.mu, 1.0, 1),)  # an infinite mu: no noise


def trained(
    model: nn.Module,
    settings: WarmStart,
    augmentation: Augmentation | None,
    data: dict[str, Images],
    plans: dict[str, Plan],
    sources: dict[str, Noise],
    seed: int,
) -> tuple[State, int]:
    """(the weights after training on `settings.images` of each client, the bytes of all images that were sent)."""
    sets = []
    for client in sorted(data):
        own = seeds.derive(seed, client)
        state = dp_moments.fit(data[client], plans[client], sources[client], own)
        sets.append(dp_moments.sample(state, settings.images, own))
    everything = concatenate(sets)
    classifier.fit(
        model,
        everything,
        epochs=settings.epochs,
        batch=settings.batch,
        learning_rate=settings.learning_rate,
        seed=seed,
        augmentation=augmentation,
        one_cycle=True,
    )
    return state_of(model), everything.images.nbytes
