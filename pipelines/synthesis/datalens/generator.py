"""Trains the generator of `datalens` by the noisy votes of teacher discriminators.

The method is PATE on image gradients (DataLens, CCS 2021). Released: per generator step, the sums
over N teachers of their votes on B fakes, plus discrete Gaussian noise. Sensitivity per step
2 sqrt(k B) (votes.py); T steps compose to mu = 2 sqrt(k B T) / sigma, exactly, because k, B, T and
sigma are fixed in `plan`. Accounted there; released in `fit`, once per step.

Where the authors' code breaks its own premise this differs: one teacher per record by a keyed hash,
an optimiser per teacher, noise from the operating system, no data-dependent bound, labels of the
fakes from no record (docs/papers.md).

What the authors' code lacks costs nothing. The labels of the fakes in turn, low frequencies of the
noisy votes alone, and several generator steps per vote use public or released numbers. A teacher
that must also reject its own records under wrong labels still casts one ballot per fake. Teachers
drawn anew for each step would vote under less noise only with an amplification bound for a replaced
ballot; those of dp-accounting are for a record that is present or absent, and a teacher that lost
its record still votes. So all of them vote, always.
"""

import math
from functools import partial

import numpy as np
import torch
from tqdm import tqdm

from models.generator import Generator
from pipelines.config.generators import Datalens
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.accounting import gdp_epsilon
from pipelines.privacy.discrete_gaussian import release
from pipelines.privacy.noise import Noise
from pipelines.synthesis import neural
from pipelines.synthesis.base import HERE, Plan, Space, Where
from pipelines.synthesis.datalens import plan as planning
from pipelines.synthesis.datalens import votes
from pipelines.synthesis.datalens.ensemble import Ensemble, Recipe
from pipelines.synthesis.datalens.journal import Journal
from pipelines.synthesis.datalens.machines import Machines
from pipelines.synthesis.datalens.teacher_block import Ballot
from pipelines.synthesis.datalens.workers import Workers, assembled
from pipelines.training.tensors import device, one_thread

KNOWN_FAILURES = (
    "blurred or noise-like images where teachers are few; labels are uniform, not the client's"
)
# of the mechanism, in the ledger: raise it when the same parameters would release something else
VERSION = 3
IDENTITY = planning.IDENTITY
plan = planning.plan
sample = neural.sample


def fit(
    shard: Images, plan: Plan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Trains teachers and generator side by side; only the noisy votes reach the generator.

    Args:
        shard: The client's private records.
        plan: The plan, from `plan`.
        noise: The noise source.
        seed: The seed of weights, latents and batches, and the key of the map to teachers.
        where: The device, and the folder for what a killed run needs.

    Returns:
        The generator's state.
    """
    settings = plan.settings
    on = device(where.device)
    owner = votes.assign(shard.ids, settings.teachers, key=seed.to_bytes(8, "big"))
    average = len(shard) / settings.teachers
    print(f"  records per teacher: {average:.1f} on average (private: never exported)")
    recipe = _recipe(plan, seed, on)
    with one_thread(), assembled(recipe, shard, owner, _ballot(settings)) as teachers:
        training = _training(plan, seed, on)
        journal = Journal(where.unfinished, (settings.batch, math.prod(plan.space.shape)))
        first = journal.resumed(training, teachers)
        _skip_noise(noise, journal, plan)
        bar = tqdm(
            range(first, settings.steps),
            "datalens",
            settings.steps,
            initial=first,
            disable=None,
            mininterval=1,
        )
        for step in bar:
            noisy = _step(step, training, teachers, journal, noise, plan)
            journal.checkpoint(step + 1, training, teachers)
            bar.set_postfix_str(_progress(step + 1, noisy, plan), refresh=False)
    return neural.state(training.network)


def _skip_noise(noise: Noise, journal: Journal, plan: Plan) -> None:
    """Moves a seeded source past the noise of the steps that were released before."""
    sigma = plan.statement.details["sigma"]
    scale = plan.statement.details["lattice_steps_per_vote"]
    if sigma > 0:
        for released in journal.released:
            noise.skip(released.shape, sigma * scale)


def _step(
    step: int,
    training: neural.Training,
    teachers: Ensemble | Workers | Machines,
    journal: Journal,
    noise: Noise,
    plan: Plan,
) -> np.ndarray:
    """Takes one step: fakes, training and votes of the teachers, noise, and the generator's steps.

    Returns:
        The noisy votes [B, d].
    """
    settings = plan.settings
    sigma = plan.statement.details["sigma"]
    scale = plan.statement.details["lattice_steps_per_vote"]
    # 1. fakes
    z, labels = _drawn(training, step, settings)
    with torch.no_grad():
        fakes = training.network(z, labels)
    # 2. teachers train on them and vote
    rounds = settings.teacher_steps + (settings.teacher_warmup if step == 0 else 0)
    total = teachers.poll(fakes.cpu().numpy(), labels.cpu().numpy(), rounds) * scale
    # 3. the release, which is written down before it is used
    add_noise = partial(release, total, sigma=sigma, scale=scale, noise=noise)
    noisy = journal.once(step, add_noise)
    # 4. post-processing: the generator follows the noisy votes
    direction = _direction(noisy, settings, plan.space)
    target = _target(fakes, direction, settings.step_length)
    _follow(training.network, training.optimiser, z, labels, target, settings)
    return noisy


def _recipe(plan: Plan, seed: int, on: torch.device) -> Recipe:
    settings = plan.settings
    return Recipe(
        network=settings.teacher_network,
        shape=plan.space.shape,
        classes=plan.space.classes,
        hidden=settings.teacher_hidden,
        count=settings.teachers,
        learning_rate=settings.learning_rate,
        seed=seed + 1,
        wrong_labels=settings.wrong_labels,
        device=on.type,
    )


def _ballot(settings: Datalens) -> Ballot:
    """Returns how a teacher's image gradients become its vote; this crosses to other processes."""
    return partial(
        votes.vote, top_k=settings.top_k, clip=settings.clip, stochastic=settings.stochastic
    )


def _training(plan: Plan, seed: int, on: torch.device) -> neural.Training:
    settings = plan.settings
    network = neural.generator(
        settings.generator_network, plan.space, latent=settings.latent, seed=seed
    ).to(on)
    optimiser = torch.optim.Adam(
        network.parameters(), lr=settings.generator_learning_rate, betas=(0.5, 0.999)
    )
    return neural.Training(network, optimiser, torch.Generator().manual_seed(seed + 2))


def _drawn(
    training: neural.Training, step: int, settings: Datalens
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draws latents z [B, latent] and labels [B] of a step's fakes.

    Labels in turn go on where the last step ended.
    """
    network = training.network
    z, labels = network.draw(settings.batch, training.stream)
    if settings.labels == "in_turn":
        first = step * settings.batch
        labels = torch.arange(first, first + settings.batch) % network.classes
    on = next(network.parameters()).device
    return z.to(on), labels.to(on)


def _progress(steps: int, noisy: np.ndarray, plan: Plan) -> str:
    """Returns the last votes' signal to noise and what the first `steps` have cost.

    The first is post-processing, the second is made of public numbers.
    """
    statement = plan.statement
    sigma = statement.details["sigma"]
    mu = statement.mu * math.sqrt(steps / plan.settings.steps)
    spent = gdp_epsilon(mu=mu, delta=statement.delta)
    return f"signal/noise {votes.signal_to_noise(noisy, sigma):.2f}, epsilon so far {spent:.2f}"


def _direction(noisy: np.ndarray, settings: Datalens, space: Space) -> np.ndarray:
    """Returns where the noisy votes say that each fake should go, [B, d]; post-processing, free."""
    centred = votes.centred(noisy, settings.centre_votes)
    thresholded = votes.thresholded(centred, settings.threshold, settings.teachers)
    return votes.smoothed(thresholded, settings.vote_cutoff, space.shape)


def _target(fakes: torch.Tensor, direction: np.ndarray, step_length: float) -> torch.Tensor:
    """Returns the fakes moved along their votes by `step_length`, rms per pixel."""
    move = torch.from_numpy(direction).float().reshape(fakes.shape).to(fakes.device)
    rms = move.flatten(1).square().mean(1).sqrt().clamp(min=1e-12)
    return fakes + step_length * move / rms[:, None, None, None]


def _follow(
    generator: Generator,
    optimiser: torch.optim.Optimizer,
    z: torch.Tensor,
    labels: torch.Tensor,
    target: torch.Tensor,
    settings: Datalens,
) -> None:
    """Takes generator steps towards the target: post-processing, as many as one likes."""
    for _ in range(settings.generator_steps):
        optimiser.zero_grad(set_to_none=True)
        (generator(z, labels) - target).square().sum().backward()
        optimiser.step()
