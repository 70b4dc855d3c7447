"""A fitted generator on disk: its state and the statement of what it cost. Private until it is exported."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from pipelines.config import Profile
from pipelines.files import read_arrays, read_json, write_arrays, write_json
from pipelines.privacy.noise import Noise
from pipelines.synthesis.registry import Plan, Space


def public_space(profile: Profile) -> Space:
    return Space(*profile.shape, profile.classes)


def announce(plan: Plan, name: str) -> None:
    """What is about to be spent, before it is."""
    statement = plan.statement
    print(f"{name}: epsilon {statement.epsilon:g}, delta {statement.delta:g}, mu {statement.mu:.4g}, per record")
    for line in (*plan.lines, *(f"WEAK: {reason}" for reason in plan.weak)):
        print(f"  {line}")


def save(folder: Path, state: dict[str, np.ndarray], plan: Plan, noise: Noise) -> None:
    statement = plan.statement
    if statement.guarantee == "formal":
        statement = replace(statement, guarantee=noise.guarantee, noise=noise.source)
    write_arrays(folder / "generator.safetensors", state)
    write_json(folder / "release.json", {"privacy": statement.as_dict(), "weak": plan.weak})


def load(folder: Path) -> tuple[dict[str, np.ndarray], dict]:
    """(state, release.json).

    Raises:
        UserError: the folder lacks them or they cannot be read.
    """
    return read_arrays(folder / "generator.safetensors"), read_json(folder / "release.json")
