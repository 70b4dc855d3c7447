"""The blocks of params.yaml together, and how a data set's own settings are found in them."""

from typing import Literal

from pydantic import ValidationError

from pipelines.config.data import Client, Network, Partition, Prepare, Privacy, Profile, Quality
from pipelines.config.dp import DP_BASELINES, DpBaselines, looks_at_images
from pipelines.config.federation import Federation
from pipelines.config.generators import GENERATORS, Synthesis
from pipelines.config.training import Baselines, FineTune, LocalSgd, Meta, NewClients
from pipelines.config.values import Block, Name, Seed, sentences
from pipelines.errors import UserError


class Blocks(Block):
    """Holds the blocks of params.yaml, each valid by itself, and finds a data set's own settings."""

    seed: Seed
    device: Literal["auto", "cpu", "cuda"]
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
    networks: dict[Network, dict[Name, dict]]
    profiles: dict[Name, Profile]

    def generator(self, dataset: str, name: str) -> Block:
        """The settings of generator `name`: its block under `synthesis`, overridden by the data set's profile."""
        overrides = getattr(self.profiles[dataset], name)
        merged = {**getattr(self.synthesis, name).model_dump(), **overrides}
        try:
            return GENERATORS[name].model_validate(merged)
        except ValidationError as error:
            raise UserError(
                sentences(error, owner=f"synthesis.{name} (profile {dataset})")
            ) from None

    def training(self, dataset: str, name: str) -> Block:
        """The settings of `meta`, `fine_tune`, `new_clients` or a baseline: its block, overridden by what the data
        set's classifier needs (`networks`), then by its profile. In both `federated` stands for every algorithm of
        local SGD and `meta` for every one of MAML, but for what makes one of them what it is."""
        profile = self.profiles[dataset]
        layers = [self.networks.get(self._network(dataset, name), {}), profile.training]
        return self._trained(name, layers, f"{name} (profile {dataset})")

    def _network(self, dataset: str, name: str) -> str:
        """Returns what a method trains: the network that its own block names, or the profile's classifier."""
        profile = self.profiles[dataset]
        shared = getattr(self.dp_baselines, name).network if name in DP_BASELINES else None
        named = profile.training.get(name, {}).get("network", shared)
        return named if isinstance(named, str) else profile.classifier

    def _trained(self, name: str, layers: list[dict[str, dict]], owner: str) -> Block:
        """The block `name` under each layer of overrides in turn; the last one wins.

        Raises:
            UserError: the result is not valid; `owner` is whose it is.
        """
        of = (
            self
            if name in Blocks.model_fields
            else self.dp_baselines
            if name in DP_BASELINES
            else self.baselines
        )
        block = getattr(of, name)
        merged = block.model_dump()
        for overrides in layers:
            if isinstance(block, Meta | LocalSgd):
                family = overrides.get(block.family, {})
                merged |= {key: value for key, value in family.items() if key not in block.own}
            merged |= overrides.get(name, {})
        try:
            return type(block).model_validate(merged)
        except ValidationError as error:
            raise UserError(sentences(error, owner=owner)) from None

    def public_fraction(self, dataset: str) -> float:
        """The share of a data set's images that is declared public; none of one's own, unless its profile says so."""
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
        """Why a noisy algorithm does not run on one's own images, a sentence; "" where it runs: it looks at public
        images, and none are declared."""
        settings = self.training(dataset, algorithm)
        field = looks_at_images(settings)
        if not field or self.profiles[dataset].is_public or self.public_fraction(dataset):
            return ""
        return (
            f"{algorithm} is left out: its {field} {getattr(settings, field)!r} looks at images that are declared "
            f"public, and {self.public_knob(dataset)} declares none of {dataset}'s."
        )

    def budget(self, client: str) -> tuple[float, float]:
        """(epsilon, delta) of one client."""
        own = self.clients[client]
        return own.epsilon, own.delta or self.privacy.delta
