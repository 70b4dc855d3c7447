"""Says what one client's generator releases, before it is made: its plan, noise and ledger entry.

The stage `train_generator` makes it, and `pipelines.plan` announces it. Both follow from here.
"""

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

from pipelines import releases, seeds
from pipelines.config import Params
from pipelines.datasets.labelled_images import Images
from pipelines.privacy import noise
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Release
from pipelines.privacy.noise import Noise
from pipelines.synthesis import base, release
from pipelines.synthesis.base import Plan


@dataclass(frozen=True)
class ClientRelease:
    """Names one release of one client's shard.

    Attributes:
        params: The parameters of the project.
        dataset: The data set's name.
        client: The client's name.
        generator: The generator's name.
    """

    params: Params
    dataset: str
    client: str
    generator: str

    @property
    def module(self) -> ModuleType:
        """Returns the module of the generator."""
        return base.load(self.generator)

    @cached_property
    def plan(self) -> Plan:
        """Returns what was decided about the release, by public numbers alone.

        Raises:
            UserError: The plan can only make noise and is to be refused, or is impossible.
        """
        settings = self.params.generator(self.dataset, self.generator)
        records = self.params.public_records(self.dataset, self.client)
        space = release.public_space(self.params.profiles[self.dataset], records)
        return self.module.plan(settings, Budget(*self.params.budget(self.client)), space)

    @property
    def seed(self) -> int:
        """Returns the seed of everything random but the noise."""
        return seeds.derive(self.params.seed, *self._names)

    @cached_property
    def source(self) -> Noise:
        """Returns where the noise comes from."""
        test_seed = seeds.derive(self.params.seed, "test noise", *self._names)
        return noise.source(self.params.privacy.noise, test_seed)

    def entry(self, train: Images) -> Release:
        """Returns what the client's ledger enters.

        Args:
            train: The training part of the client's shard.
        """
        return release.entry(
            self.generator,
            self.module.VERSION,
            self.module.IDENTITY,
            self.plan,
            release.described(self.plan, self.source),
            data=releases.digest(train),
            seed=self.seed,
        )

    @property
    def _names(self) -> tuple[str, ...]:
        return ("train_generator", self.dataset, self.client, self.generator)
