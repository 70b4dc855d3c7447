"""Checks what must hold between blocks of settings, each of which is valid by itself."""

import math
import os
from collections.abc import Callable
from pathlib import Path

from pipelines.config.blocks import Blocks
from pipelines.config.data import (
    LARGEST,
    MOST_CHANNELS,
    ON_FIXED_FEATURES,
    SMALLEST,
    WITH_WEIGHTS,
    Partition,
    Profile,
    channels_first,
    lacks_features,
)
from pipelines.config.dp import (
    DP_BASELINES,
    NEEDING_NO_IMAGES,
    Dpsgd,
    DpsgdHead,
    disagreement,
    looks_at_images,
)
from pipelines.config.federation import FEWEST
from pipelines.config.generators import GENERATORS, HEADS, JOINT
from pipelines.config.training import BASELINES, NewClients
from pipelines.config.values import Block, Names, mistake
from pipelines.errors import UserError
from pipelines.paths import RAW

METHODS = ("meta", "fine_tune", "new_clients", *BASELINES, *DP_BASELINES)
# The names that a profile's `training`, and a network's block under `networks`, may override.
TRAINING = (*METHODS[:3], "federated", *METHODS[3:])


class Checks:
    """Holds the blocks against one another; each check raises UserError with one sentence.

    Args:
        params: The blocks.
        file: Returns the file in which the value at a path stands.
    """

    def __init__(self, params: Blocks, file: Callable[[tuple], str]):
        self.params = params
        self.file = file

    def all(self) -> None:
        """Makes every check.

        Raises:
            UserError: A check fails.
        """
        self.networks()
        self.profiles()
        self.root()
        self.lists()
        self.clients()
        self.partition()
        self.joint()
        self.new_clients("new_clients", self.params.new_clients)
        for dataset in self.params.profiles:
            block = self.params.training(dataset, "new_clients")
            self.new_clients(f"new_clients (profile {dataset})", block)

    def _mistake(self, where: str, got: object, rule: str, known: Names = ()) -> UserError:
        """Returns `values.mistake`, with the file in which the value stands."""
        file = None if "(" in where else self.file(tuple(where.split(".")))
        return mistake(where, got, rule, file, known)

    def networks(self) -> None:
        """Checks what each network overrides."""
        for network, overrides in self.params.networks.items():
            self._names(f"networks.{network}", overrides, TRAINING)
            for name in METHODS:
                self.params.on_network(network, name)

    def _names(self, where: str, names: Names, allowed: Names) -> None:
        for name in names:
            if name not in allowed:
                raise self._mistake(where, name, f"one of {', '.join(allowed)}", allowed)

    def profiles(self) -> None:
        """Checks each profile, and the settings that its data set has under it."""
        for dataset in self.params.datasets:
            if dataset not in self.params.profiles:
                rule = "a name that has a file in 'profiles', NAME.yaml"
                raise self._mistake("datasets", dataset, rule, self.params.profiles)
        for dataset, profile in self.params.profiles.items():
            where = f"profiles.{dataset}"
            self._names(f"{where}.training", profile.training, TRAINING)
            self._names(f"{where}.synthesis", profile.synthesis, tuple(GENERATORS))
            self._shape(dataset, profile)
            self._class_names(dataset, profile)
            for name in METHODS:
                self.params.training(dataset, name)
            self._networks_fit(dataset, profile)
            self._head(dataset, profile)
            self._encoder(dataset, profile)

    def _shape(self, dataset: str, profile: Profile) -> None:
        where = f"profiles.{dataset}.shape"
        if not profile.is_public and channels_first(profile.shape):
            channels, *sides = profile.shape
            rule = (
                "[height, width, channels]: this one has its channels first, "
                f"write {[*sides, channels]}"
            )
            raise self._mistake(where, profile.shape, rule)
        if profile.source in ("folder", "site_folder") and profile.shape[2] not in (1, 3):
            rule = "[height, width, 1 or 3] for an image folder"
            raise self._mistake(where, profile.shape, rule)

    def _class_names(self, dataset: str, profile: Profile) -> None:
        if profile.class_names is not None and len(profile.class_names) != profile.classes:
            rule = f"a name for each of the {profile.classes} classes"
            raise self._mistake(f"profiles.{dataset}.class_names", profile.class_names, rule)

    def _networks_fit(self, dataset: str, profile: Profile) -> None:
        """Checks that the data set's images are neither too small nor too large for a network."""
        owners = {"": profile}
        for name in GENERATORS:
            # `_head` says it of those that run
            if name not in HEADS:
                owners[f".synthesis.{name}"] = self.params.generator(dataset, name)
        noisy = self.params.dp_baselines.algorithms if dataset in self.params.datasets else ()
        for name in noisy:
            block = self._noisy(dataset, name)
            # `left_out` says it of the data set alone: the others run
            if not isinstance(block, DpsgdHead):
                owners[f".training.{name}"] = block
        for owner, block in owners.items():
            for field in ("classifier", "network"):
                name = getattr(block, field, None)
                least = SMALLEST.get(name, 1)
                if min(profile.shape[:2]) < least:
                    rule = f"'mlp' for images below {least}x{least}"
                    raise self._mistake(f"profiles.{dataset}{owner}.{field}", name, rule)
                most = LARGEST.get(name, math.inf)
                if max(profile.shape[:2]) > most:
                    rule = f"another for images above {most}x{most}"
                    raise self._mistake(f"profiles.{dataset}{owner}.{field}", name, rule)
                channels = MOST_CHANNELS.get(name, math.inf)
                if profile.shape[2] > channels:
                    rule = f"another for images of more than {channels} channels"
                    raise self._mistake(f"profiles.{dataset}{owner}.{field}", name, rule)

    def _head(self, dataset: str, profile: Profile) -> None:
        """Checks a data set that runs a head: its images have features, and it makes images."""
        for name in HEADS:
            if name not in self.params.synthesis.generators or dataset not in self.params.datasets:
                continue
            block = self.params.generator(dataset, name)
            lacking = lacks_features(profile.shape, block.network)
            if lacking:
                rule = (
                    f"a list without {name} where images have not {lacking}, as those of {dataset}"
                )
                raise self._mistake("synthesis.generators", name, rule)
            if block.head_share == 1:
                rule = "below 1 for one of synthesis.generators: nothing is left for its images"
                where = f"synthesis.{name} (profile {dataset}).head_share"
                file = self.file(self.params.written(dataset, name, "head_share"))
                raise mistake(where, block.head_share, rule, file)

    def _encoder(self, dataset: str, profile: Profile) -> None:
        """Checks that the network `encoder` is described where something is trained on it."""
        where = f"profiles.{dataset}.encoder"
        networks = [profile.classifier]
        for name in HEADS:
            networks.append(self.params.generator(dataset, name).network)
        for name in DP_BASELINES:
            networks.append(self.params.training(dataset, name).network)
        if "encoder" in networks and not profile.encoder:
            rule = "a block with a network and a side where a network is 'encoder'"
            raise self._mistake(where, profile.encoder, rule)
        if not profile.encoder:
            return
        lacking = lacks_features(profile.shape, "encoder")
        if lacking:
            rule = f"null where images have not {lacking}"
            raise self._mistake(where, profile.encoder.network, rule)
        if not profile.encoder.weights and profile.encoder.network != WITH_WEIGHTS:
            rule = f"the path of a file where the network is not {WITH_WEIGHTS}"
            raise self._mistake(f"{where}.weights", profile.encoder.weights, rule)

    def _noisy(self, dataset: str, name: str) -> Block:
        """Returns the settings of a noisy algorithm that a data set runs, if they agree."""
        block = self.params.training(dataset, name)
        federation = self.params.federation
        if federation.engine == "nvflare" and federation.mode == "local" and block.warm_start:
            rule = (
                "a list without those that have a warm_start: clients release those images "
                "together, in one process"
            )
            raise self._mistake("dp_baselines.algorithms", name, rule)
        network = block.network or self.params.profiles[dataset].classifier
        if block.activation != "relu" and network in ("resnet", *ON_FIXED_FEATURES):
            rule = f"'relu' where the network is {network}"
            raise self._noisy_mistake(dataset, name, "activation", rule)
        if isinstance(block, Dpsgd):
            broken = disagreement(block)
            if broken:
                raise self._noisy_mistake(dataset, name, *broken)
            self._public_images(dataset, name, block)
        return block

    def _noisy_mistake(self, dataset: str, name: str, field: str, rule: str) -> UserError:
        got = getattr(self.params.training(dataset, name), field)
        file = self.file(self.params.written(dataset, name, field))
        return mistake(f"dp_baselines.{name} (profile {dataset}).{field}", got, rule, file)

    def _public_images(self, dataset: str, name: str, block: Dpsgd) -> None:
        field = looks_at_images(block)
        public = self.params.profiles[dataset].is_public
        if field and public and not self.params.public_fraction(dataset):
            plain = " or ".join(NEEDING_NO_IMAGES[field])
            rule = f"{plain} without images to validate on, {self.params.public_knob(dataset)}"
            raise self._noisy_mistake(dataset, name, field, rule)

    def root(self) -> None:
        """Checks the folder of raw files."""
        root = self.params.prepare.root
        place = Path(os.path.relpath(root or "."))
        holds_the_project = set(place.parts) <= {".."}
        if holds_the_project or not (".." in place.parts or place.is_relative_to(RAW)):
            rule = f"'{RAW}', which Git ignores, or a folder beside the project"
            raise self._mistake("prepare.root", root, rule)

    def clients(self) -> None:
        """Checks that each client gets a shard, and that its lifetime values agree."""
        shards = self.params.partition.clients
        for client in self.params.clients:
            if client not in shards:
                rule = f"among 'partition.clients' ({', '.join(shards)}), who get a shard"
                raise self._mistake("clients", client, rule)
        for client, settings in self.params.clients.items():
            if settings.lifetime_delta is not None and settings.lifetime_epsilon is None:
                rule = "null where there is no lifetime_epsilon, of which it is the delta"
                where = f"clients.{client}.lifetime_delta"
                raise self._mistake(where, settings.lifetime_delta, rule)
        if not self.params.clients:
            raise self._mistake("clients", "{}", "a mapping with at least one client")

    def partition(self) -> None:
        """Checks the small client and the shares of records."""
        partition = self.params.partition
        small = partition.small
        if small and (small.client not in partition.clients or len(partition.clients) < 2):
            rule = "one of two or more 'partition.clients'"
            raise self._mistake("partition.small.client", small.client, rule)
        if partition.validation_fraction + partition.test_fraction >= 1:
            rule = "below 1 - validation_fraction"
            raise self._mistake("partition.test_fraction", partition.test_fraction, rule)
        if partition.scheme == "natural":
            self._natural(partition)

    def _natural(self, partition: Partition) -> None:
        """Checks that no record has to leave its owner, and that each site has one client."""
        if partition.small:
            rule = "null with scheme 'natural', which takes no record from its owner"
            raise self._mistake("partition.small", partition.small.model_dump(), rule)
        if partition.sites is None:
            return
        if set(partition.sites) != set(partition.clients):
            rule = f"a mapping of each of 'partition.clients', {partition.clients}, to its sites"
            raise self._mistake("partition.sites", partition.sites, rule)
        claimed = set()
        for client, sites in partition.sites.items():
            if not sites or len(set(sites)) < len(sites) or claimed & set(sites):
                rule = "a list of at least one site, none twice and none that another client has"
                raise self._mistake(f"partition.sites.{client}", sites, rule)
            claimed |= set(sites)

    def lists(self) -> None:
        """Checks the lists of what runs: no name stands twice, and only methods may be none."""
        params = self.params
        lists = {
            "datasets": params.datasets,
            "partition.clients": params.partition.clients,
            "synthesis.generators": params.synthesis.generators,
            "baselines.algorithms": params.baselines.algorithms,
            "dp_baselines.algorithms": params.dp_baselines.algorithms,
        }
        self._names("baselines.algorithms", params.baselines.algorithms, BASELINES)
        for where, names in lists.items():
            may_be_empty = where.endswith(".algorithms")
            if len(set(names)) < len(names) or not (names or may_be_empty):
                rule = "a list of names" if may_be_empty else "a list of at least one name"
                raise self._mistake(where, names, f"{rule}, none twice")

    def joint(self) -> None:
        """Checks what a release of several clients together needs."""
        params = self.params
        generators = [name for name in params.synthesis.generators if name in JOINT]
        if not generators:
            return
        name = generators[0]
        if params.federation.is_remote:
            self._roster(name)
        for dataset in params.datasets:
            held_out = params.training(dataset, "new_clients").held_out
            if held_out:
                rule = f"[] with {name}, whose sets hold what those clients' records say, too"
                where = f"new_clients (profile {dataset}).held_out"
                file = self.file(params.written(dataset, "new_clients", "held_out"))
                raise mistake(where, held_out, rule, file)

    def _roster(self, generator: str) -> None:
        """Checks who makes a joint release over a network.

        Args:
            generator: The joint generator.
        """
        roster = self.params.federation.roster
        missing = sorted(set(self.params.clients) - set(roster))
        if len(roster) < FEWEST or missing:
            rule = (
                f"a mapping of {FEWEST} clients or more, those of `clients` among them, with "
                f"{generator} where federation.mode is 'remote' (docs/deployment.md, section 11)"
            )
            raise self._mistake("federation.roster", dict(roster), rule)

    def new_clients(self, where: str, block: NewClients) -> None:
        """Checks the settings of new clients.

        Args:
            where: Whose they are.
            block: The settings.
        """
        held_out = block.held_out
        clients = list(self.params.clients)
        if not set(held_out) <= set(clients) or len(set(held_out)) < len(held_out):
            rule = f"a list of clients of {clients}, none twice"
            raise self._mistake(f"{where}.held_out", held_out, rule)
        if held_out and len(clients) < 2:
            rule = "[] with a single client: one must be left to train"
            raise self._mistake(f"{where}.held_out", held_out, rule)
        if not block.labels or block.labels != sorted(set(block.labels)):
            rule = "a list of at least one number of records, rising"
            raise self._mistake(f"{where}.labels", block.labels, rule)
        if not block.algorithms or len(set(block.algorithms)) < len(block.algorithms):
            rule = "a list of at least one name, none twice"
            raise self._mistake(f"{where}.algorithms", block.algorithms, rule)
