"""A fitted generator on disk: its state and the statement of what it cost. Private until it is exported."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from pipelines.config.data import Profile
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.files import AGAIN, read_arrays, read_json, require, write_arrays, write_json
from pipelines.privacy.accounting import total_epsilon
from pipelines.privacy.ledger import Identity, Release
from pipelines.privacy.noise import Noise
from pipelines.privacy.statement import Statement
from pipelines.synthesis import base
from pipelines.synthesis.base import Plan, Space


def public_space(profile: Profile) -> Space:
    return Space(*profile.shape, profile.classes)


def announce(plan: Plan, name: str, generators: int) -> None:
    """What is about to be spent, before it is: by this release, and by as many `generators` with the same budget."""
    statement = plan.statement
    print(
        f"{name}: epsilon {statement.epsilon:g}, delta {statement.delta:g}, mu {statement.mu:.4g}, per record"
    )
    if generators > 1:
        costs = [{"kind": "gaussian", "mu": statement.mu}] * generators
        total = total_epsilon(costs=costs, delta=statement.delta)
        print(f"  if the sets of all {generators} generators are handed out: epsilon {total:.3f}")
    for line in plan.lines:
        print(f"  {line}")
    if plan.weak:
        print("  WEAK: this plan can only make noise; its card.md says why, and what would work")


def described(plan: Plan, noise: Noise) -> Statement:
    """The plan's statement with the noise it will be made with, which may void its guarantee; noise of another kind
    beside the discrete one is named by the plan."""
    if plan.statement.guarantee != "formal":
        return plan.statement
    named = "; ".join(filter(None, (noise.source, plan.statement.noise)))
    return replace(plan.statement, guarantee=noise.guarantee, noise=named)


def entry(
    name: str,
    version: int,
    identity: Identity,
    plan: Plan,
    statement: Statement,
    *,
    data: str,
    seed: int,
) -> Release:
    """Returns what the ledger enters: all that shapes the release but its noise, and the most it may cost.

    Args:
        name, version, identity: of the generator.
        data: the hash of the records that it reads.
        seed: of everything random but the noise.
    """
    details = {key: value for key, value in statement.details.items() if key != "hyperparameters"}
    parameters = {
        "epsilon": statement.epsilon,
        "delta": statement.delta,
        "noise": statement.noise,
        "seed": seed,
    }
    formal = statement.guarantee == "formal"
    return Release(
        mechanism=name,
        version=version,
        parameters={**parameters, "space": asdict(plan.space), **details},
        data=data,
        cost={"kind": "gaussian", "mu": statement.mu} if formal else {"kind": "none"},
        statement=statement.as_dict(),
        identity=identity,
    )


def save(folder: Path, state: dict[str, np.ndarray], plan: Plan, fingerprint: str) -> None:
    """The state, and the name under which the ledger knows it: the statement is read there and nowhere else."""
    write_arrays(folder / "generator.safetensors", state)
    write_json(folder / "release.json", {"fingerprint": fingerprint, "weak": plan.weak})


def load(folder: Path) -> tuple[dict[str, np.ndarray], dict]:
    """(state, release.json).

    Raises:
        UserError: the folder lacks them or they cannot be read.
    """
    released = read_json(folder / "release.json")
    require(folder / "release.json", released, "fingerprint", "weak")
    if not isinstance(released["fingerprint"], str) or not isinstance(released["weak"], list):
        raise UserError(f"{folder / 'release.json'} names no release. {AGAIN}")
    return read_arrays(folder / "generator.safetensors"), released


def sample(folder: Path, name: str, state: dict[str, np.ndarray], count: int, seed: int) -> Images:
    """`count` images of the generator `name` from its state, which was read from `folder`.

    Raises:
        UserError: the state is not one of this generator.
    """
    try:
        return base.load(name).sample(state, count, seed)
    except KeyError as error:
        path = folder / "generator.safetensors"
        raise UserError(
            f"{path} lacks {error}, which {name} needs. Run train_generator again."
        ) from error
