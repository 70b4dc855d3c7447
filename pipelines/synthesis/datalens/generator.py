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

from pipelines.config.generators import Datalens
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.accounting import gdp_epsilon
from pipelines.privacy.discrete_gaussian import release
from pipelines.privacy.noise import Noise
from pipelines.synthesis import neural
from pipelines.synthesis.base import HERE, Plan, Where
from pipelines.synthesis.datalens import plan as planning
from pipelines.synthesis.datalens import votes
from pipelines.synthesis.datalens.ensemble import Ensemble, Recipe
from pipelines.synthesis.datalens.journal import Journal
from pipelines.synthesis.datalens.machines import Machines
from pipelines.synthesis.datalens.student import Student
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
    recipe = recipe_of(plan, settings.teachers, seed, on)
    student = Student(settings, plan.space, seed, on)
    training = student.training
    with one_thread(), assembled(recipe, shard, owner, ballot(settings)) as teachers:
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
            noisy = _step(step, student, teachers, journal, noise, plan)
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
    student: Student,
    teachers: Ensemble | Workers | Machines,
    journal: Journal,
    noise: Noise,
    plan: Plan,
) -> np.ndarray:
    """Takes one step: fakes, training and votes of the teachers, noise, and the generator's steps.

    Returns:
        The noisy votes [B, d].
    """
    sigma = plan.statement.details["sigma"]
    scale = plan.statement.details["lattice_steps_per_vote"]
    # 1. fakes
    question = student.ask(step)
    # 2. teachers train on them and vote
    total = teachers.poll(*question.arrays, student.rounds(step)) * scale
    # 3. the release, which is written down before it is used
    add_noise = partial(release, total, sigma=sigma, scale=scale, noise=noise)
    noisy = journal.once(step, add_noise)
    # 4. post-processing: the generator follows the noisy votes
    student.learn(step, question, noisy)
    return noisy


def recipe_of(plan: Plan, teachers: int, seed: int, on: torch.device) -> Recipe:
    """Returns what the teachers are made from.

    Args:
        plan: The plan.
        teachers: How many there are.
        seed: The seed of the run.
        on: The device.
    """
    settings = plan.settings
    return Recipe(
        network=settings.teacher_network,
        shape=plan.space.shape,
        classes=plan.space.classes,
        hidden=settings.teacher_hidden,
        count=teachers,
        learning_rate=settings.learning_rate,
        seed=seed + 1,
        wrong_labels=settings.wrong_labels,
        device=on.type,
    )


def ballot(settings: Datalens) -> Ballot:
    """Returns how a teacher's image gradients become its vote; this crosses to other processes."""
    return partial(
        votes.vote, top_k=settings.top_k, clip=settings.clip, stochastic=settings.stochastic
    )


def _progress(steps: int, noisy: np.ndarray, plan: Plan) -> str:
    """Returns the last votes' signal to noise and what the first `steps` have cost.

    The first is post-processing, the second is made of public numbers.
    """
    statement = plan.statement
    sigma = statement.details["sigma"]
    mu = statement.mu * math.sqrt(steps / plan.settings.steps)
    spent = gdp_epsilon(mu=mu, delta=statement.delta)
    return f"signal/noise {votes.signal_to_noise(noisy, sigma):.2f}, epsilon so far {spent:.2f}"
