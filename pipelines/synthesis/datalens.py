"""`datalens`: a conditional generator taught by the noisy votes of teacher discriminators (PATE; DataLens, CCS 2021).

Released: per generator step, the sums over N teachers of their votes on B fakes, plus discrete Gaussian noise.
Sensitivity per step 2 sqrt(k B) (votes.py); T steps compose to mu = 2 sqrt(k B T) / sigma, exactly, because k, B, T
and sigma are fixed in `plan`. Accounted there; released in `fit`, once per step. Where the authors' code breaks its
own premise this differs: one teacher per record by a keyed hash, an optimiser per teacher, noise from the operating
system, no data-dependent bound, labels of the fakes drawn uniformly (README, "What the papers print").
"""

import math
from functools import partial

import numpy as np
import torch
from tqdm import tqdm

from models.generator import Generator
from pipelines.config import Datalens
from pipelines.datasets.containers import Images
from pipelines.errors import UserError
from pipelines.privacy.accounting import classic_epsilon, gdp_epsilon
from pipelines.privacy.gaussian import Budget, lattice_scale, release
from pipelines.privacy.noise import Noise
from pipelines.privacy.statement import Statement
from pipelines.synthesis import neural, votes
from pipelines.synthesis.registry import HERE, Plan, Space, Where
from pipelines.synthesis.teachers.block import Ballot
from pipelines.synthesis.teachers.ensemble import Recipe
from pipelines.synthesis.teachers.journal import Journal
from pipelines.synthesis.teachers.workers import assembled
from pipelines.training.tensors import device, one_thread

KNOWN_FAILURES = "blurred or noise-like images where teachers are few; labels are uniform, not the client's"
VERSION = 2  # of the mechanism, in the ledger: raise it when the same parameters would release something else
LEAST_STEPS = 50  # fewer steps, or more than one sigma of noise per unanimous vote, train nothing (measured)
LARGEST_RATIO = 1.0


def plan(settings: Datalens, budget: Budget, space: Space) -> Plan:
    """Noise for the asked steps, and whether they can teach anything. No private record is read.

    Raises:
        UserError: `top_k` exceeds the pixels of an image, or the plan is weak and `weak_plan` is `refuse`.
    """
    pixels = math.prod(space.shape)
    if settings.top_k > pixels:
        raise UserError(
            f"The 'top_k' parameter of synthesis.datalens must be at most the {pixels} pixels of an image. "
            f"Got {settings.top_k} instead. (params.yaml)"
        )
    sensitivity = votes.sensitivity(top_k=settings.top_k, batch=settings.batch)
    sigma = sensitivity * math.sqrt(settings.steps) / budget.mu if budget.private else 0.0
    ratio = sigma / settings.teachers
    affordable = _affordable(settings, budget)
    draws = settings.steps * settings.batch * pixels
    weak = _weakness(ratio, affordable)
    details = {
        "sensitivity": sensitivity,
        "sigma": sigma,
        "N": settings.teachers,
        "k": settings.top_k,
        "B": settings.batch,
        "T": settings.steps,
        "sigma_over_N": ratio,
        "steps_affordable_at_sigma_N_1": affordable,
        "lattice_steps_per_vote": lattice_scale(budget, sigma=sigma or 1.0, draws=draws),
        "epsilon_by_the_papers_accountant": _papers_epsilon(budget),
        "settings": settings.model_dump(),
        "hyperparameters": "fixed in params.yaml before the run; how they were found is not accounted",
        "labels": "uniform over the declared classes",
    }
    statement = Statement(
        mechanism="datalens (noisy teacher votes on image gradients)",
        epsilon=budget.epsilon,
        delta=budget.delta,
        mu=budget.mu,
        guarantee="formal" if budget.private else "none",
        noise="",
        details=details,
    )
    line = (
        f"datalens: {settings.steps} steps at sigma/N = {ratio:.2f}; at sigma/N = 1 the budget buys {affordable} steps"
    )
    if weak and settings.weak_plan == "refuse":
        raise UserError(f"{line}. {weak[0]} Or set synthesis.datalens.weak_plan to 'warn'. (params.yaml)")
    return Plan(settings, space, statement, weak, (line,))


def fit(shard: Images, plan: Plan, noise: Noise, seed: int, where: Where = HERE) -> dict[str, np.ndarray]:
    """Trains teachers and generator side by side; only the noisy votes reach the generator."""
    settings, details = plan.settings, plan.statement.details
    sigma, scale = details["sigma"], details["lattice_steps_per_vote"]
    on = device(where.device)
    owner = votes.assign(shard.ids, settings.teachers, key=seed.to_bytes(8, "big"))
    print(f"  records per teacher: {len(shard) / settings.teachers:.1f} on average (private: never exported)")
    shape = (settings.batch, math.prod(plan.space.shape))
    with one_thread(), assembled(_recipe(plan, seed, on), shard, owner, _ballot(settings)) as teachers:
        training = _training(plan, seed, on)
        generator, journal = training.network, Journal(where.unfinished, shape)
        first = journal.resumed(training, teachers)
        for _ in journal.released if sigma > 0 else ():
            noise.skip(shape, sigma * scale)
        bar = tqdm(range(first, settings.steps), "datalens", settings.steps, initial=first, disable=None, mininterval=1)
        for step in bar:
            z, labels = (tensor.to(on) for tensor in generator.draw(settings.batch, training.stream))
            with torch.no_grad():
                fakes = generator(z, labels)
            rounds = settings.teacher_steps + (settings.teacher_warmup if step == 0 else 0)
            total = teachers.poll(fakes.cpu().numpy(), labels.cpu().numpy(), rounds) * scale
            noisy = journal.once(step, partial(release, total, sigma=sigma, scale=scale, noise=noise))
            direction = votes.thresholded(noisy, settings.threshold, settings.teachers)
            _follow(generator, training.optimiser, z, labels, _target(fakes, direction, settings.step_length), settings)
            journal.checkpoint(step + 1, training, teachers)
            bar.set_postfix_str(_progress(step + 1, noisy, plan), refresh=False)
    return neural.state(generator)


sample = neural.sample


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
        device=on.type,
    )


def _ballot(settings: Datalens) -> Ballot:
    """How a teacher's image gradients become its vote; this crosses to other processes."""
    return partial(votes.vote, top_k=settings.top_k, clip=settings.clip, stochastic=settings.stochastic)


def _training(plan: Plan, seed: int, on: torch.device) -> neural.Training:
    settings = plan.settings
    network = neural.generator(settings.generator_network, plan.space, latent=settings.latent, seed=seed).to(on)
    optimiser = torch.optim.Adam(network.parameters(), lr=settings.generator_learning_rate, betas=(0.5, 0.999))
    return neural.Training(network, optimiser, torch.Generator().manual_seed(seed + 2))


def _progress(steps: int, noisy: np.ndarray, plan: Plan) -> str:
    """Signal to noise of the last votes and what the first `steps` have cost: post-processing and public numbers."""
    statement, sigma = plan.statement, plan.statement.details["sigma"]
    mu = statement.mu * math.sqrt(steps / plan.settings.steps)
    spent = gdp_epsilon(mu=mu, delta=statement.delta)
    return f"signal/noise {votes.signal_to_noise(noisy, sigma):.2f}, epsilon so far {spent:.2f}"


def _target(fakes: torch.Tensor, direction: np.ndarray, step_length: float) -> torch.Tensor:
    """The fakes moved along their votes by `step_length`, rms per pixel."""
    move = torch.from_numpy(direction).float().reshape(fakes.shape).to(fakes.device)
    rms = move.flatten(1).square().mean(1).sqrt().clamp(min=1e-12)
    return fakes + step_length * move / rms[:, None, None, None]


def _follow(generator: Generator, optimiser, z, labels, target: torch.Tensor, settings: Datalens) -> None:
    """Generator steps towards the target: post-processing, as many as one likes."""
    for _ in range(settings.generator_steps):
        optimiser.zero_grad(set_to_none=True)
        (generator(z, labels) - target).square().sum().backward()
        optimiser.step()


def _affordable(settings: Datalens, budget: Budget) -> int | str:
    """Steps at sigma = N: T = (mu N / 2)^2 / (k B)."""
    if not budget.private:
        return "any number of"
    return int((budget.mu * settings.teachers * LARGEST_RATIO / 2) ** 2 / (settings.top_k * settings.batch))


def _papers_epsilon(budget: Budget) -> float:
    """What DataLens' accountant would have printed for the same noise: larger, as its conversion is loose."""
    return classic_epsilon(mu=budget.mu, delta=budget.delta)[0] if budget.private else math.inf


def _weakness(ratio: float, affordable: int | str) -> tuple[str, ...]:
    if isinstance(affordable, str) or (affordable >= LEAST_STEPS and ratio <= LARGEST_RATIO):
        return ()
    return (
        f"This plan can only make noise: the least that works is {LEAST_STEPS} steps at sigma/N <= {LARGEST_RATIO:g}. "
        "Take dp_moments, or more teachers with at least about ten records each, a smaller top_k or batch, "
        "or a larger epsilon.",
    )
