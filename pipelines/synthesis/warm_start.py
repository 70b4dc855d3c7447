"""Trains the classifier that a joint noisy run starts from, on images that every client released.

Released, with its sensitivity and relation: what `dp_moments` releases, by a share of the client's
mu squared. It is accounted as the first step of the run that follows: Gaussian noise of multiplier
1 / mu on a sum over all records, at the delta that the lattice of its noise leaves. The training is
post-processing.
"""

from dataclasses import dataclass

from torch import nn

from pipelines import seeds
from pipelines.config import Params
from pipelines.config.data import Augmentation
from pipelines.config.generators import DpMoments, WarmStart
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.privacy import accounting
from pipelines.privacy.accounting import Steps
from pipelines.privacy.discrete_gaussian import SLACK_SHARE, Budget
from pipelines.privacy.noise import Noise
from pipelines.synthesis import dp_moments
from pipelines.synthesis.base import Plan, Space
from pipelines.synthesis.release import public_space
from pipelines.training import classifier
from pipelines.training.tensors import State, state_of


def plan(settings: DpMoments, epsilon: float, delta: float, share: float, space: Space) -> Plan:
    """Plans dp_moments at the epsilon that the share is worth alone.

    The settings of dp_moments for a small budget thus apply where the share is small.

    Args:
        settings: The settings of dp_moments.
        epsilon: The client's whole epsilon.
        delta: The client's delta.
        share: The images' share of mu squared, in (0, 1).
        space: What is public about the images.
    """
    share_of_mu = Budget(epsilon, delta, share).mu
    share_of_epsilon = accounting.gdp_epsilon(mu=share_of_mu, delta=continuous(delta))
    return dp_moments.plan(settings, Budget(share_of_epsilon, delta), space)


def continuous(delta: float) -> float:
    """Returns what is left of delta once the lattice of the images' noise has its part."""
    return delta * (1 - SLACK_SHARE)


def steps(plan: Plan) -> tuple[Steps, ...]:
    """Returns what the release costs, as steps of the run's account."""
    # an infinite mu means no noise
    return (Steps(1 / plan.statement.mu, 1.0, 1),)


def trained(
    model: nn.Module,
    settings: WarmStart,
    augmentation: Augmentation | None,
    data: dict[str, Images],
    plans: dict[str, Plan],
    sources: dict[str, Noise],
    seed: int,
) -> tuple[State, int]:
    """Releases images of every client and trains a classifier on them.

    Args:
        model: The classifier. It is trained in place.
        settings: Images per client, epochs, batch size and learning rate.
        augmentation: The data set's public augmentation, or None.
        data: The private records of each client.
        plans: The plan of each client's release, from `plan`.
        sources: The noise source of each client.
        seed: The seed of the draws and of the training, but not of the noise.

    Returns:
        The weights after training, and the bytes of all images that were sent.
    """
    client_images = []
    for client in sorted(data):
        client_seed = seeds.derive(seed, client)
        state = dp_moments.fit(data[client], plans[client], sources[client], client_seed)
        client_images.append(dp_moments.sample(state, settings.images, client_seed))
    all_images = concatenate(client_images)
    classifier.fit(
        model,
        all_images,
        epochs=settings.epochs,
        batch=settings.batch,
        learning_rate=settings.learning_rate,
        seed=seed,
        augmentation=augmentation,
        one_cycle=True,
    )
    return state_of(model), all_images.images.nbytes


@dataclass(frozen=True)
class JointStart:
    """Holds what one joint run starts from, as the run asks for it (`noisy_run.Start`).

    Attributes:
        settings: Images per client, epochs, batch size and learning rate.
        plans: The plan of each client's release.
        augmentation: The data set's public augmentation, or None.
        seed: The seed of the draws and of the training, but not of the noise.
    """

    settings: WarmStart
    plans: dict[str, Plan]
    augmentation: Augmentation | None
    seed: int

    identity = dp_moments.IDENTITY

    def delta(self, delta: float) -> float:
        """Returns what is left of a client's delta for the run's own steps."""
        return continuous(delta)

    def before(self, client: str) -> tuple[Steps, ...]:
        """Returns what the client's release costs, as steps of the run's account."""
        return steps(self.plans[client])

    def parameters(self, client: str) -> dict:
        """Returns the parameters of the client's release, for its ledger."""
        return parameters(self.plans[client], self.augmentation)

    def weights(
        self, model: nn.Module, records: dict[str, Images], sources: dict[str, Noise]
    ) -> tuple[State, int]:
        """Releases the images, and trains a model on them.

        Args:
            model: The classifier. It is trained in place.
            records: The private records of each client.
            sources: The noise source of each client.

        Returns:
            The weights after training, and the bytes of all images that were sent.
        """
        return trained(
            model, self.settings, self.augmentation, records, self.plans, sources, self.seed
        )


def parameters(plan: Plan, augmentation: Augmentation | None) -> dict:
    """Returns the parameters by which a ledger tells two starts apart."""
    warps = augmentation and augmentation.model_dump()
    details = plan.statement.details
    return {**details, "version": dp_moments.VERSION, "augmentation": warps}


def joint_start(params: Params, dataset: str, method: str) -> JointStart | None:
    """Returns what a noisy method starts from, or None if it starts from a fresh network.

    Args:
        params: The parameters of the project.
        dataset: The name of the data set.
        method: The noisy method, as in `dp_baselines`.
    """
    settings = params.training(dataset, method).warm_start
    if not settings:
        return None
    moments = params.generator(dataset, "dp_moments")
    space = public_space(params.profiles[dataset])
    plans = {}
    for client in params.clients:
        epsilon, delta = params.budget(client)
        plans[client] = plan(moments, epsilon, delta, settings.share, space)
    augmentation = params.profiles[dataset].augmentation
    seed = seeds.derive(params.seed, "warm_start", dataset, method)
    return JointStart(settings, plans, augmentation, seed)
