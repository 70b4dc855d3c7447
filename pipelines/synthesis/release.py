"""Reads and writes a fitted generator: its state and its name in the ledger.

Both are private until the generator is exported.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from pipelines.config.data import Profile
from pipelines.config.generators import WITH_CLASSIFIER
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.files import AGAIN, read_arrays, read_json, require, write_arrays, write_json
from pipelines.privacy.accounting import total_epsilon
from pipelines.privacy.ledger import Identity, Release, wording
from pipelines.privacy.noise import Noise
from pipelines.privacy.statement import Statement
from pipelines.synthesis import base
from pipelines.synthesis.base import Plan, Space, Weights


def public_space(profile: Profile, records: int | None = None) -> Space:
    """Returns the shape, the number of classes and the encoder that a profile declares.

    Args:
        profile: The profile of the data set.
        records: About how many records the client trains on, a public number, or None. The size of
            a shard is private and must not stand here.
    """
    return Space(*profile.shape, profile.classes, profile.encoder, records)


def announce(plan: Plan, name: str, generators: int) -> None:
    """Prints what is about to be spent, before it is.

    Args:
        plan: The plan of this release.
        name: The generator's name, as it is printed.
        generators: How many generators have this budget each. Of several, the total is printed.
    """
    statement = plan.statement
    print(
        f"{name}: epsilon {statement.epsilon:g}, delta {statement.delta:g}, "
        f"mu {statement.mu:.4g}, per record"
    )
    if generators > 1:
        costs = [{"kind": "gaussian", "mu": statement.mu}] * generators
        total = wording.rounded_up(total_epsilon(costs=costs, delta=statement.delta))
        print(f"  if the sets of all {generators} generators are handed out: epsilon {total}")
    for line in plan.lines:
        print(f"  {line}")
    if plan.weak:
        print("  WEAK: this plan can only make noise; its card.md says why, and what would work")


def described(plan: Plan, noise: Noise) -> Statement:
    """Returns the plan's statement with the noise it will be made with.

    A noise source for tests voids the guarantee. The plan names noise of another kind that is used
    beside the discrete one.
    """
    if plan.statement.guarantee != "formal":
        return plan.statement
    named = "; ".join(filter(None, (noise.source, plan.statement.noise)))
    made = replace(plan.statement, guarantee=noise.guarantee, noise=named)
    if made.guarantee == "formal":
        return made
    # without a guarantee there is nothing that trust in others would keep
    details = {key: value for key, value in made.details.items() if key != "trust"}
    return replace(made, trust=None, details=details)


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
    """Returns what the ledger enters: all that shapes the release but its noise, and its cost.

    Args:
        name: The generator's name.
        version: The generator's VERSION.
        identity: The generator's IDENTITY.
        plan: The plan of the release.
        statement: The plan's statement with its noise, from `described`.
        data: The hash of the records that the generator reads.
        seed: The seed of everything random but the noise.
    """
    space = asdict(plan.space)
    # what is used of an encoder is in the details
    del space["encoder"]
    # what a plan makes of records stands in the details
    del space["records"]
    parameters = {
        "epsilon": statement.epsilon,
        "delta": statement.delta,
        "noise": statement.noise,
        "seed": seed,
        "space": space,
        **statement.details,
    }
    # gan states none
    parameters.pop("hyperparameters", None)
    formal = statement.guarantee == "formal"
    return Release(
        mechanism=name,
        version=version,
        parameters=parameters,
        data=data,
        cost={"kind": "gaussian", "mu": statement.mu} if formal else {"kind": "none"},
        statement=statement.as_dict(),
        identity=identity,
    )


def save(folder: Path, state: dict[str, np.ndarray], plan: Plan, fingerprint: str) -> None:
    """Writes a state, and the name under which the ledger knows it.

    The privacy statement is read in the ledger and nowhere else.

    Args:
        folder: An existing folder.
        state: The generator's state, from `fit`.
        plan: The plan of the release.
        fingerprint: The release's name in the ledger.
    """
    write_arrays(folder / "generator.safetensors", state)
    write_json(folder / "release.json", {"fingerprint": fingerprint, "weak": plan.weak})


def save_joint(
    folder: Path,
    state: dict[str, np.ndarray],
    plan: Plan,
    fingerprints: dict[str, str],
    among: dict | None = None,
) -> None:
    """Writes the state of a generator that several clients fitted together.

    Args:
        folder: An existing folder.
        state: The generator's state.
        plan: The plan of the release.
        fingerprints: The release's name in each client's ledger that lies here.
        among: Of a release between machines, what else the client keeps: `together`, its public
            name in every client's ledger, `sealed`, what all have signed, and `attempt`, the random
            word of this one.
    """
    write_arrays(folder / "generator.safetensors", state)
    content = {"fingerprints": fingerprints, "weak": plan.weak, **(among or {})}
    write_json(folder / "release.json", content)


def fingerprints_in(source: Path, client: str) -> dict[str, str]:
    """Returns the name of a joint release in each client's ledger.

    Args:
        source: The folder that `save_joint` filled.
        client: A client that has to be among them.

    Raises:
        UserError: The source names no release of this client, or cannot be read.
    """
    path = source / "release.json"
    released = read_json(path)
    require(path, released, "fingerprints", "weak")
    fingerprints = released["fingerprints"]
    if not isinstance(fingerprints, dict) or client not in fingerprints:
        raise UserError(f"{path} names no release of {client}. {AGAIN}")
    return fingerprints


def public_names_in(source: Path) -> dict[str, str]:
    """Returns the public name of a release in the ledger of every client, which other machines told.

    It is empty where all ledgers are on this machine.

    Args:
        source: The folder that `save_joint` filled.

    Raises:
        UserError: The source cannot be read.
    """
    path = source / "release.json"
    names = read_json(path).get("together", {})
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise UserError(f"{path} names no releases of clients. {AGAIN}")
    return names


def seal_in(source: Path) -> dict:
    """Returns what the clients of a release between machines have signed (`pipelines/seal.py`).

    It is empty where all ledgers are on this machine.

    Args:
        source: The folder that `save_joint` filled.

    Raises:
        UserError: The source cannot be read, or holds no seal in its place.
    """
    path = source / "release.json"
    sealed = read_json(path).get("sealed", {})
    usual = isinstance(sealed, dict) and isinstance(sealed.get("signatures", {}), dict)
    if not usual or (sealed and not {"release", "totals", "signatures"} <= set(sealed)):
        raise UserError(f"{path} holds no seal that clients have signed. {AGAIN}")
    return sealed


def copy_joint(
    source: Path, folder: Path, fingerprint: str, together: dict[str, str], sealed: dict
) -> None:
    """Writes what `save` writes, for one of the clients that fitted a generator together.

    Args:
        source: The folder that `save_joint` filled.
        folder: An existing folder.
        fingerprint: The release's name in the client's ledger.
        together: Its public name in the ledger of every client; empty for one client alone.
        sealed: What the clients have signed, from `seal_in`.
    """
    write_arrays(folder / "generator.safetensors", read_arrays(source / "generator.safetensors"))
    content = {"fingerprint": fingerprint, "weak": read_json(source / "release.json")["weak"]}
    among = {"together": together, "sealed": sealed}
    content |= {name: value for name, value in among.items() if value}
    write_json(folder / "release.json", content)


def load(folder: Path) -> tuple[dict[str, np.ndarray], dict]:
    """Returns a state and the content of its release.json.

    Raises:
        UserError: The folder lacks them or they cannot be read.
    """
    released = read_json(folder / "release.json")
    require(folder / "release.json", released, "fingerprint", "weak")
    if not isinstance(released["fingerprint"], str) or not isinstance(released["weak"], list):
        raise UserError(f"{folder / 'release.json'} names no release. {AGAIN}")
    return read_arrays(folder / "generator.safetensors"), released


def sample(folder: Path, name: str, state: dict[str, np.ndarray], count: int, seed: int) -> Images:
    """Returns images of a generator, drawn from its state.

    Args:
        folder: The folder that the state was read from. Errors name it.
        name: The generator's name.
        state: The generator's state, from `load`.
        count: How many images to draw.
        seed: The seed of the draw.

    Raises:
        UserError: The state is not one of this generator.
    """
    with _state_of(folder, name):
        return base.load(name).sample(state, count, seed)


def classifier(
    folder: Path, name: str, state: dict[str, np.ndarray], statement: dict
) -> Weights | None:
    """Returns the classifier that a generator released beside its images.

    It is a part of the state, so that handing it out costs nothing more.

    Args:
        folder: The folder that the state was read from. Errors name it.
        name: The generator's name.
        state: The generator's state, from `load`.
        statement: The statement of the release, as the ledger holds it.

    Returns:
        The classifier, or None if the generator releases images alone.

    Raises:
        UserError: The state is not one of this generator.
    """
    if name not in WITH_CLASSIFIER:
        return None
    with _state_of(folder, name):
        return base.load(name).classifier_weights(state, statement["details"].get("settings", {}))


@contextmanager
def _state_of(folder: Path, name: str) -> Iterator[None]:
    """Turns a missing array of a generator's state into an error that the user reads.

    Raises:
        UserError: The block asked the state for an array that it lacks.
    """
    try:
        yield
    except KeyError as error:
        path = folder / "generator.safetensors"
        raise UserError(
            f"{path} lacks {error}, which {name} needs. Run train_generator again."
        ) from error
