"""Trains `gan`: a conditional GAN without any privacy, the upper line for `datalens`.

It ignores the client's epsilon and says so in its statement. Everything made with it is marked
`guarantee: none`.
"""

import math

import numpy as np
import torch
from tqdm import tqdm

from models.teachers import TEACHERS
from pipelines.config.generators import Gan
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Identity
from pipelines.privacy.noise import Noise
from pipelines.privacy.statement import Statement
from pipelines.synthesis import neural
from pipelines.synthesis.base import HERE, Plan, Space, Where
from pipelines.synthesis.datalens.teacher_block import Block

KNOWN_FAILURES = "may repeat training records; mode collapse"
# of the mechanism, in the ledger: raise it when the same parameters would release something else
VERSION = 2
IDENTITY = Identity(
    consequences=frozenset({"labels", "noise"}), neutral={"settings.wrong_labels": False}
)


def plan(settings: Gan, budget: Budget, space: Space) -> Plan:
    """Returns a plan whose statement says that there is no guarantee.

    Args:
        settings: The settings of `synthesis.gan`.
        budget: The client's budget. Only its delta is shown.
        space: What is public about the images.
    """
    statement = Statement(
        mechanism="gan (trained on the records themselves)",
        epsilon=math.inf,
        delta=budget.delta,
        mu=math.inf,
        guarantee="none",
        noise="none",
        details={"settings": settings.model_dump(), "labels": "uniform over the declared classes"},
    )
    line = "gan: NOT PRIVATE, epsilon is infinite whatever the budget says"
    return Plan(settings, space, statement, lines=(line,))


def fit(
    shard: Images, plan: Plan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Trains one discriminator on the whole shard, and the generator through its gradients.

    Args:
        shard: The client's private records.
        plan: The plan, from `plan`.
        noise: The noise source, which is not used.
        seed: The seed of the weights and of all draws.
        where: Where the fit runs.

    Returns:
        The generator's state.
    """
    settings = plan.settings
    generator = neural.generator(
        settings.generator_network,
        plan.space,
        latent=settings.latent,
        hidden=settings.hidden,
        seed=seed,
    )
    optimiser = torch.optim.Adam(
        generator.parameters(), lr=settings.learning_rate, betas=(0.5, 0.999)
    )
    network = TEACHERS[settings.discriminator_network]
    critic = Block(
        network(plan.space.shape, plan.space.classes, settings.hidden),
        shard,
        np.zeros(len(shard), np.int64),
        count=1,
        learning_rate=settings.learning_rate,
        seed=seed + 1,
        wrong_labels=settings.wrong_labels,
    )
    stream = torch.Generator().manual_seed(seed + 2)
    for _ in tqdm(range(settings.steps), desc="gan", disable=None, mininterval=1):
        z, labels = generator.draw(settings.batch, stream)
        fakes = generator(z, labels)
        critic.train_step(fakes.detach(), labels)
        direction = critic.image_gradients(fakes, labels)[0].reshape(fakes.shape)
        optimiser.zero_grad(set_to_none=True)
        fakes.backward(-direction)
        optimiser.step()
    return neural.state(generator)


sample = neural.sample
