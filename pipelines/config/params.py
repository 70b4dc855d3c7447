"""All parameters: the blocks of params.yaml, what must hold between them, and how they are loaded."""

import os
from pathlib import Path

from pydantic import ValidationError, model_validator

from pipelines.config.blocks import Blocks
from pipelines.config.data import SMALLEST, Profile, channels_first
from pipelines.config.dp import DP_BASELINES, NEEDING_NO_IMAGES, Dpsgd, looks_at_images
from pipelines.config.generators import GENERATORS
from pipelines.config.training import BASELINES, NewClients
from pipelines.config.values import Block, mistake, sentences
from pipelines.config.yaml_reader import read
from pipelines.errors import UserError
from pipelines.paths import RAW

LEAST_FALL = 1e-3  # of planned noise
LEAST_DECAY = 0.9  # of noise that follows the loss; DPFL-AGN prints 0.001 for one, which spends a budget in a step
# what a profile's `training`, and a network's block under `networks`, may override
TRAINING = ("meta", "fine_tune", "new_clients", "federated", *BASELINES, *DP_BASELINES)


class Params(Blocks):
    """Holds parameters whose blocks agree with one another."""

    @model_validator(mode="after")
    def _blocks_agree(self):
        self._check_networks()
        self._check_profiles()
        self._check_root()
        self._check_clients()
        self._check_lists()
        self._check_new_clients("new_clients", self.new_clients)
        for dataset in self.profiles:
            self._check_new_clients(
                f"new_clients (profile {dataset})", self.training(dataset, "new_clients")
            )
        return self

    def _check_networks(self) -> None:
        for network, overrides in self.networks.items():
            self._check_overrides(f"networks.{network}", overrides)
            for name in TRAINING:
                if name != "federated":
                    self._trained(name, [overrides], f"{name} (network {network})")

    def _check_overrides(self, where: str, overrides: dict[str, dict]) -> None:
        for name in overrides:
            if name not in TRAINING:
                raise mistake(where, name, f"of {', '.join(TRAINING)}")

    def _check_profiles(self) -> None:
        for dataset in self.datasets:
            if dataset not in self.profiles:
                raise mistake("datasets", dataset, "a name that has a block under 'profiles'")
        for dataset, profile in self.profiles.items():
            self._check_images(dataset, profile)
            owners = {"": profile} | {
                f".{name}": self.generator(dataset, name) for name in GENERATORS
            }
            used = self.dp_baselines.algorithms if dataset in self.datasets else ()
            owners |= {f".training.{name}": self._dp_baseline(dataset, name) for name in used}
            for owner, block in owners.items():
                for field in ("classifier", "network"):
                    name = getattr(block, field, None)
                    least = SMALLEST.get(name, 1)
                    if min(profile.shape[:2]) < least:
                        asked = f"'mlp' for images below {least}x{least}"
                        raise mistake(f"profiles.{dataset}{owner}.{field}", name, asked)
            self._check_overrides(f"profiles.{dataset}.training", profile.training)
            for name in TRAINING:
                if name != "federated":
                    self.training(dataset, name)
            if profile.source == "folder" and profile.shape[2] not in (1, 3):
                raise mistake(
                    f"profiles.{dataset}.shape",
                    profile.shape,
                    "[height, width, 1 or 3] for an image folder",
                )

    def _check_images(self, dataset: str, profile: Profile) -> None:
        if not profile.is_public and channels_first(profile.shape):
            channels, *sides = profile.shape
            rule = f"[height, width, channels]: this one has its channels first, write {[*sides, channels]}"
            raise mistake(f"profiles.{dataset}.shape", profile.shape, rule)
        if profile.class_names is not None and len(profile.class_names) != profile.classes:
            rule = f"a name for each of the {profile.classes} classes"
            raise mistake(f"profiles.{dataset}.class_names", profile.class_names, rule)

    def _dp_baseline(self, dataset: str, name: str) -> Block:
        block, where = self.training(dataset, name), f"dp_baselines.{name} (profile {dataset})"
        if (
            self.federation.engine == "nvflare"
            and self.federation.mode == "local"
            and block.warm_start
        ):
            rule = "a list without those that have a warm_start: clients release those images together, in one process"
            raise mistake("dp_baselines.algorithms", name, rule)
        if (
            block.activation != "relu"
            and (block.network or self.profiles[dataset].classifier) == "resnet"
        ):
            raise mistake(
                f"{where}.activation", block.activation, "'relu' where the network is resnet"
            )
        if not isinstance(block, Dpsgd):
            return block
        if block.noise_control == "scheduled" and block.local_steps_rule != "fixed":
            rule = "'fixed' where noise_control is scheduled: the plan says which round has how much noise"
            raise mistake(f"{where}.local_steps_rule", block.local_steps_rule, rule)
        falls = block.noise_control in ("falling_loss", "plateau")
        if falls and block.local_steps_rule != "fixed" and block.noise_multiplier is None:
            rule = f"a float above 0 where noise_control is {block.noise_control} and local_steps_rule not fixed"
            raise mistake(f"{where}.noise_multiplier", None, rule)
        if block.local_steps_rule != "fixed" and block.most_local_steps < block.local_steps:
            rule = f"at least local_steps, {block.local_steps}"
            raise mistake(f"{where}.most_local_steps", block.most_local_steps, rule)
        if falls and block.noise_decay < LEAST_DECAY:
            rule = f"at least {LEAST_DECAY:g} where noise_control is {block.noise_control}: few falls would spend all"
            raise mistake(f"{where}.noise_decay", block.noise_decay, rule)
        planned = block.noise_control == "scheduled" or (falls and block.noise_multiplier is None)
        if planned and block.noise_decay**block.rounds < LEAST_FALL:
            rule = f"nearer to 1: over {block.rounds} rounds the noise would fall to less than a thousandth"
            raise mistake(f"{where}.noise_decay", block.noise_decay, rule)
        if block.clipping == "nonprivate_oracle" and not block.allow_nonprivate:
            rule = "another mode, or allow_nonprivate true: it takes norms from private gradients without noise"
            raise mistake(f"{where}.clipping", block.clipping, rule)
        field = looks_at_images(block)
        if field and self.profiles[dataset].is_public and not self.public_fraction(dataset):
            plain = " or ".join(NEEDING_NO_IMAGES[field])
            rule = f"{plain} without images to validate on, {self.public_knob(dataset)}"
            raise mistake(f"{where}.{field}", getattr(block, field), rule)
        return block

    def _check_root(self) -> None:
        inside = Path(os.path.relpath(self.prepare.root or "."))
        if ".." not in inside.parts and not inside.is_relative_to(RAW):
            raise mistake(
                "prepare.root",
                self.prepare.root,
                f"'{RAW}', which Git ignores, or outside the project",
            )

    def _check_clients(self) -> None:
        for client in self.clients:
            if client not in self.partition.clients:
                raise mistake(
                    "clients", client, "among the clients of 'partition.clients', who get a shard"
                )
        for client, own in self.clients.items():
            if own.lifetime_delta is not None and own.lifetime_epsilon is None:
                rule = "null where there is no lifetime_epsilon, of which it is the delta"
                raise mistake(f"clients.{client}.lifetime_delta", own.lifetime_delta, rule)
        if not self.clients:
            raise mistake("clients", "{}", "a mapping with at least one client")
        small, clients = self.partition.small, self.partition.clients
        if small and (small.client not in clients or len(clients) < 2):
            raise mistake(
                "partition.small.client", small.client, "one of two or more 'partition.clients'"
            )
        if self.partition.validation_fraction + self.partition.test_fraction >= 1:
            raise mistake(
                "partition.test_fraction",
                self.partition.test_fraction,
                "below 1 - validation_fraction",
            )

    def _check_lists(self) -> None:
        lists = {
            "datasets": self.datasets,
            "partition.clients": self.partition.clients,
            "synthesis.generators": self.synthesis.generators,
            "baselines.algorithms": self.baselines.algorithms,
            "dp_baselines.algorithms": self.dp_baselines.algorithms,
        }
        for name in self.baselines.algorithms:
            if name not in BASELINES:
                raise mistake("baselines.algorithms", name, f"a list of {', '.join(BASELINES)}")
        for where, names in lists.items():
            if not names or len(set(names)) < len(names):
                raise mistake(where, names, "a list of at least one name, none twice")

    def _check_new_clients(self, where: str, block: NewClients) -> None:
        held_out, labels, clients = block.held_out, block.labels, list(self.clients)
        if not set(held_out) <= set(clients) or len(set(held_out)) < len(held_out):
            raise mistake(
                f"{where}.held_out", held_out, f"a list of clients of {clients}, none twice"
            )
        if held_out and len(clients) < 2:
            raise mistake(
                f"{where}.held_out", held_out, "[] with a single client: one must be left to train"
            )
        if not labels or labels != sorted(set(labels)):
            raise mistake(
                f"{where}.labels", labels, "a list of at least one number of records, rising"
            )
        if not block.algorithms or len(set(block.algorithms)) < len(block.algorithms):
            raise mistake(
                f"{where}.algorithms", block.algorithms, "a list of at least one name, none twice"
            )


def load(path: Path = Path("params.yaml")) -> Params:
    """Reads and checks the parameters.

    Raises:
        UserError: with one sentence for each mistake in the file.
    """
    content = read(path)
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        raise UserError(sentences(error)) from None


def summary(params: Params) -> str:
    """One line about a file that is as it should be."""
    counts = {
        "data set": params.datasets,
        "client": params.clients,
        "generator": params.synthesis.generators,
        "baseline": params.baselines.algorithms,
        "noisy baseline": params.dp_baselines.algorithms,
    }
    parts = [
        f"{len(names)} {name}{'' if len(names) == 1 else 's'}" for name, names in counts.items()
    ]
    return f"params.yaml is valid: {', '.join(parts)}."
