"""Holds the blocks of settings together, and finds a data set's own settings in them."""

from typing import Literal, NamedTuple

from pydantic import Field, ValidationError

from pipelines.config.data import (
    Client,
    Network,
    Partition,
    Prepare,
    Privacy,
    Profile,
    Quality,
    lacks_features,
)
from pipelines.config.dp import DP_BASELINES, DpBaselines, DpsgdHead, looks_at_images
from pipelines.config.federation import Federation
from pipelines.config.generators import GENERATORS, Synthesis
from pipelines.config.heads import Head, Heads
from pipelines.config.places import PROFILES, belongs_in
from pipelines.config.training import BASELINES, Baselines, FineTune, LocalSgd, Meta, NewClients
from pipelines.config.values import Block, Name, Seed, sentences
from pipelines.errors import UserError


class Layer(NamedTuple):
    """Holds values that come on top of a block.

    Attributes:
        path: Where they stand in the settings.
        values: {name of a setting: its value}.
    """

    path: tuple[str, ...]
    values: dict


class Blocks(Block):
    """Holds all blocks of settings, each valid by itself, and finds a data set's own settings."""

    seed: Seed
    device: Literal["auto", "cpu", "cuda"] = "auto"
    datasets: list[Name]
    clients: dict[Name, Client]
    prepare: Prepare
    partition: Partition
    privacy: Privacy
    synthesis: Synthesis
    quality: Quality
    meta: Meta
    fine_tune: FineTune
    federation: Federation
    baselines: Baselines
    dp_baselines: DpBaselines
    new_clients: NewClients
    networks: dict[Network, dict[Name, dict]] = Field(default_factory=dict)
    heads: Heads
    profiles: dict[Name, Profile]

    def generator(self, dataset: str, name: str) -> Block:
        """Returns the settings of a generator: its block, overridden by the data set's profile.

        Raises:
            UserError: The result is not valid.
        """
        owner = f"synthesis.{name} (profile {dataset})"
        return _with_layers(self.block(name), self.layers(dataset, name), self.path(name), owner)

    def training(self, dataset: str, name: str, network: str | None = None) -> Block:
        """Returns the settings of `meta`, `fine_tune`, `new_clients` or a baseline.

        They are its block, overridden by what the data set's classifier needs (`networks`), then
        by its profile. Both may override all algorithms of local SGD under `federated`, and all
        of MAML under `meta`. Such an override skips the settings in a block's `own`, which define
        the algorithm.

        Args:
            dataset: The data set's name.
            name: The block.
            network: What is trained; None: what the block names, or the data set's classifier.

        Raises:
            UserError: The result is not valid.
        """
        owner = f"{name} (profile {dataset})"
        layers = self.layers(dataset, name, network)
        return _with_layers(self.block(name), layers, self.path(name), owner)

    def on_network(self, network: str, name: str) -> Block:
        """Returns a method's settings where it trains a network, for no data set.

        Raises:
            UserError: The result is not valid.
        """
        layers = self._overrides(name, ("networks", network), self.networks[network])
        return _with_layers(
            self.block(name), layers, self.path(name), f"{name} (network {network})"
        )

    def path(self, name: str) -> tuple[str, ...]:
        """Returns where the block of a generator or method stands in the settings."""
        groups = {"synthesis": GENERATORS, "baselines": BASELINES, "dp_baselines": DP_BASELINES}
        for group, names in groups.items():
            if name in names:
                return group, name
        return (name,)

    def block(self, name: str) -> Block:
        """Returns the block of a generator or method, as it is for no data set."""
        *group, field = self.path(name)
        owner = getattr(self, group[0]) if group else self
        return getattr(owner, field)

    def layers(self, dataset: str, name: str, network: str | None = None) -> list[Layer]:
        """Returns what comes on top of a block for a data set; the last one wins.

        Args:
            dataset: The data set's name.
            name: The block.
            network: What is trained; None: what the block names, or the data set's classifier.
        """
        profile = self.profiles[dataset]
        if name in GENERATORS:
            override = Layer(
                (PROFILES, dataset, "synthesis", name), profile.synthesis.get(name, {})
            )
            return [*self._of_heads(name, override), override]
        network = network or self._network(dataset, name)
        above = self._overrides(name, ("networks", network), self.networks.get(network, {}))
        override = self._overrides(name, (PROFILES, dataset, "training"), profile.training)
        return [*self._of_heads(name, override[-1]), *above, *override]

    def _of_heads(self, name: str, override: Layer) -> list[Layer]:
        """Returns what a head has by its network, where its own block names none of it."""
        block = self.block(name)
        if not isinstance(block, Head) or block.schedules:
            return []
        network = override.values.get("network", block.network)
        tables = dict(self.heads)
        # what cannot be a network is refused as a value of `network`, and may not be hashable
        if network not in list(tables):
            network = block.network
        return [Layer(("heads", network), tables[network].model_dump())]

    def written(self, dataset: str, name: str, key: str) -> tuple[str, ...]:
        """Returns where the value of one of a data set's own settings stands.

        Args:
            dataset: The data set's name.
            name: A generator or method.
            key: The name of the setting.
        """
        for layer in reversed(self.layers(dataset, name)):
            if key in layer.values:
                return (*layer.path, key)
        return (*self.path(name), key)

    def _network(self, dataset: str, name: str) -> str:
        """Returns what a method trains: the network its own block names, or the classifier."""
        profile = self.profiles[dataset]
        shared = getattr(self.dp_baselines, name).network if name in DP_BASELINES else None
        named = profile.training.get(name, {}).get("network", shared)
        return named if isinstance(named, str) else profile.classifier

    def _overrides(
        self, name: str, path: tuple[str, ...], overrides: dict[str, dict]
    ) -> list[Layer]:
        """Returns what a mapping of overrides, at `path`, says of a method: its family, then it."""
        layers = []
        block = self.block(name)
        if isinstance(block, Meta | LocalSgd):
            family = overrides.get(block.family, {})
            values = {key: value for key, value in family.items() if key not in block.own}
            layers.append(Layer((*path, block.family), values))
        layers.append(Layer((*path, name), overrides.get(name, {})))
        return layers

    def public_fraction(self, dataset: str) -> float:
        """Returns the share of a data set's images that is declared public.

        It is none of one's own images, unless the profile says so.
        """
        profile = self.profiles[dataset]
        if profile.public_fraction is not None:
            return profile.public_fraction
        return self.prepare.public_fraction if profile.is_public else 0.0

    def public_knob(self, dataset: str) -> str:
        """Returns the path of the knob that sets that share."""
        profile = self.profiles[dataset]
        shared = profile.is_public and profile.public_fraction is None
        return "prepare.public_fraction" if shared else f"profiles.{dataset}.public_fraction"

    def left_out(self, dataset: str, algorithm: str) -> str:
        """Returns why a noisy algorithm does not run on a data set, "" where it runs.

        It looks at public images, and none of one's own are declared. Or the images have no fixed
        features.
        """
        settings = self.training(dataset, algorithm)
        shape = self.profiles[dataset].shape
        lacking = lacks_features(shape, settings.network) if isinstance(settings, DpsgdHead) else ""
        if lacking:
            return (
                f"{algorithm} is left out: it needs images of {lacking}, and those of {dataset} "
                f"have {'x'.join(map(str, shape))}."
            )
        field = looks_at_images(settings)
        if not field or self.profiles[dataset].is_public or self.public_fraction(dataset):
            return ""
        return (
            f"{algorithm} is left out: its {field} {getattr(settings, field)!r} looks at images "
            f"that are declared public, and {self.public_knob(dataset)} declares none of "
            f"{dataset}'s."
        )

    def budget(self, client: str) -> tuple[float, float]:
        """Returns (epsilon, delta) of one client."""
        settings = self.clients[client]
        return settings.epsilon, settings.delta or self.privacy.delta

    def public_records(self, dataset: str, client: str) -> int | None:
        """Returns about how many records a client trains on, from public numbers alone.

        It is what the client declares, or else its share of the records that the data set's
        profile declares. Shares are taken as equal. Shards are not, and their sizes are private,
        so nothing here counts one.

        Returns:
            None if nobody declared a number.
        """
        declared = self.clients[client].records
        small = self.partition.small
        if declared is None and small and small.client == client:
            declared = small.train_records
        if declared is not None:
            return declared
        each = self.partition.records_per_client
        total = self.profiles[dataset].records
        if each is None and total is not None:
            each = total / len(self.partition.clients)
        if each is None:
            return None
        held_back = self.partition.validation_fraction + self.partition.test_fraction
        return max(1, round(each * (1 - held_back)))


def _with_layers(block: Block, layers: list[Layer], path: tuple[str, ...], owner: str) -> Block:
    """Returns a block under each layer of overrides in turn.

    Args:
        block: The block.
        layers: The overrides.
        path: Where the block stands in the settings.
        owner: Whose the result is, for a sentence.

    Raises:
        UserError: The result is not valid.
    """
    if not any(layer.values for layer in layers):
        return block
    merged = block.model_dump()
    for layer in layers:
        merged |= layer.values

    def file(location: tuple) -> str:
        names = [layer.path for layer in layers if location[:1] and location[0] in layer.values]
        return belongs_in(names[-1] if names else path)

    try:
        return type(block).model_validate(merged)
    except ValidationError as error:
        raise UserError(sentences(error, owner=owner, file=file)) from None
