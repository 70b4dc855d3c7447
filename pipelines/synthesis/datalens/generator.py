"""`datalens`: a conditional generator taught by the noisy votes of teacher discriminators (PATE; DataLens, CCS 2021).

Released: per generator step, the sums over N teachers of their votes on B fakes, plus discrete Gaussian noise.
Sensitivity per step 2 sqrt(k B) (votes.py); T steps compose to mu = 2 sqrt(k B T) / sigma, exactly, because k, B, T
and sigma are fixed in `plan`. Accounted there; released in `fit`, once per step. Where the authors' code breaks its
own premise this differs: one teacher per record by a keyed hash, an optimiser per teacher, noise from the operating
system, no data-dependent bound, labels of the fakes from no record (docs/papers.md).

What the authors' code lacks costs nothing: the labels of the fakes in turn, low frequencies of the noisy votes alone,
and several generator steps per vote use public or released numbers; a teacher that must also reject its own records
under wrong labels still casts one ballot per fake. Teachers drawn anew for each step would vote under less noise only
with an amplification bound for a replaced ballot; those of dp-accounting are for a record that is present or absent,
and a teacher that lost its record still votes. So all of them vote, always.
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
from pipelines.synthesis.datalens.ensemble import Recipe
from pipelines.synthesis.datalens.journal import Journal
from pipelines.synthesis.datalens.teacher_block import Ballot
from pipelines.synthesis.datalens.workers import assembled
from pipelines.training.tensors import device, one_thread

KNOWN_FAILURES = (
    "blurred or noise-like images where teachers are few; labels are uniform, not the client's"
)
VERSION = 3  # of the mechanism, in the ledger: raise it when the same parameters would release something else


def fit(
    shard: Images, plan: Plan, noise: Noise, seed: int, where: Where = HERE
) -> dict[str, np.ndarray]:
    """Trains teachers and generator side by side; only the noisy votes reach the generator."""
    settings, details = plan.settings, plan.statement.details
    sigma, scale = details["sigma"], details["lattice_steps_per_vote"]
    on = device(where.device)
    owner = votes.assign(shard.ids, settings.teachers, key=seed.to_bytes(8, "big"))
    print(
        f"  records per teacher: {len(shard) / settings.teachers:.1f} on average (private: never exported)"
    )
    shape = (settings.batch, math.prod(plan.space.shape))
    with (
        one_thread(),
        assembled(_recipe(plan, seed, on), shard, owner, _ballot(settings)) as teachers,
    ):
        training = _training(plan, seed, on)
        generator, journal = training.network, Journal(where.unfinished, shape)
        first = journal.resumed(training, teachers)
        for _ in journal.released if sigma > 0 else ():
            noise.skip(shape, sigma * scale)
        bar = tqdm(
            range(first, settings.steps),
            "datalens",
            settings.steps,
            initial=first,
            disable=None,
            mininterval=1,
        )
        for step in bar:
            z, labels = (
                tensor.to(on) for tensor in _drawn(generator, training.stream, step, settings)
            )
            with torch.no_grad():
                fakes = generator(z, labels)
            rounds = settings.teacher_steps + (settings.teacher_warmup if step == 0 else 0)
            total = teachers.poll(fakes.cpu().numpy(), labels.cpu().numpy(), rounds) * scale
            noisy = journal.once(
                step, partial(release, total, sigma=sigma, scale=scale, noise=noise)
            )
            direction = _direction(noisy, settings, plan.space)
            _follow(
                generator,
                training.optimiser,
                z,
                labels,
                _target(fakes, direction, settings.step_length),
                settings,
            )
            journal.checkpoint(step + 1, training, teachers)
            bar.set_postfix_str(_progress(step + 1, noisy, plan), refresh=False)
    return neural.state(generator)


plan, sample, IDENTITY = planning.plan, neural.sample, planning.IDENTITY


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
    """How a teacher's image gradients become its vote; this crosses to other processes."""
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


def _drawn(generator: Generator, stream: torch.Generator, step: int, settings: Datalens):
    """(z, labels) of a step's fakes; labels in turn go on where the last step ended."""
    z, labels = generator.draw(settings.batch, stream)
    if settings.labels == "in_turn":
        labels = (
            torch.arange(step * settings.batch, (step + 1) * settings.batch) % generator.classes
        )
    return z, labels


def _progress(steps: int, noisy: np.ndarray, plan: Plan) -> str:
    """Signal to noise of the last votes and what the first `steps` have cost: post-processing and public numbers."""
    statement, sigma = plan.statement, plan.statement.details["sigma"]
    mu = statement.mu * math.sqrt(steps / plan.settings.steps)
    spent = gdp_epsilon(mu=mu, delta=statement.delta)
    return f"signal/noise {votes.signal_to_noise(noisy, sigma):.2f}, epsilon so far {spent:.2f}"


def _direction(noisy: np.ndarray, settings: Datalens, space: Space) -> np.ndarray:
    """[B, d]: where the noisy votes say that each fake should go; post-processing, free."""
    kept = votes.thresholded(
        votes.centred(noisy, settings.centre_votes), settings.threshold, settings.teachers
    )
    return votes.smoothed(kept, settings.vote_cutoff, space.shape)


def _target(fakes: torch.Tensor, direction: np.ndarray, step_length: float) -> torch.Tensor:
    """The fakes moved along their votes by `step_length`, rms per pixel."""
    move = torch.from_numpy(direction).float().reshape(fakes.shape).to(fakes.device)
    rms = move.flatten(1).square().mean(1).sqrt().clamp(min=1e-12)
    return fakes + step_length * move / rms[:, None, None, None]


def _follow(
    generator: Generator, optimiser, z, labels, target: torch.Tensor, settings: Datalens
) -> None:
    """Generator steps towards the target: post-processing, as many as one likes."""
    for _ in range(settings.generator_steps):
        optimiser.zero_grad(set_to_none=True)
        (generator(z, labels) - target).square().sum().backward()
        optimiser.step()
