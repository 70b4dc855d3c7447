"""A noisy run by the parameters: its network, accounts and noise, assembled in one place.

The stage, the server and the clients of a network all build their part of a run from `NoisyRun`.
"""

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol

from torch import nn

from pipelines import paths, release_store, releases, seeds
from pipelines.config import Params, looks_at_images
from pipelines.config.values import Block, mistake
from pipelines.datasets import labelled_images
from pipelines.datasets.labelled_images import Images
from pipelines.federation import health, noisy_release, noisy_training
from pipelines.federation.algorithms import base
from pipelines.federation.algorithms.noisy_base import NoisyAlgorithm
from pipelines.federation.core.rounds import NetworkRun
from pipelines.federation.dp.account import Account
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.federation.dp.public import Public
from pipelines.federation.health import Health
from pipelines.privacy import noise
from pipelines.privacy.accounting import Steps
from pipelines.privacy.ledger import Identity, Release
from pipelines.privacy.noise import Noise
from pipelines.privacy.statement import OF_NETWORK, Statement
from pipelines.training import classifier, fixed_features
from pipelines.training.fixed_features import Fixed
from pipelines.training.tensors import State, device, state_of


class Start(Protocol):
    """Declares what a run may start from: images that every client releases for it.

    Attributes:
        identity: which parameters of that release are facts.
    """

    identity: Identity

    def delta(self, delta: float) -> float:
        """Returns what is left of a client's delta for the run's own steps."""

    def before(self, client: str) -> tuple[Steps, ...]:
        """Returns what the release costs, as steps of the run's account."""

    def parameters(self, client: str) -> dict:
        """Returns the release's parameters, by which the ledger tells two starts apart."""

    def weights(
        self, model: nn.Module, records: dict[str, Images], sources: dict[str, Noise]
    ) -> tuple[State, int]:
        """Makes the release, and returns the weights it trains and the bytes that were sent."""


@dataclass(frozen=True)
class NoisyRun:
    """Assembles a run of a noisy method on one data set.

    Attributes:
        params: of the project, or of one member of a network.
        dataset: its name.
        method: a noisy method, as in `dp_baselines`.
        start: what the run starts from; None: a fresh network.
    """

    params: Params
    dataset: str
    method: str
    start: Start | None = None

    @cached_property
    def settings(self) -> Block:
        """Returns the method's settings on this data set."""
        return self.params.training(self.dataset, self.method)

    @cached_property
    def algorithm(self) -> NoisyAlgorithm:
        """Returns the algorithm of the method."""
        return base.load(self.method)

    @property
    def network(self) -> str:
        """Returns the name of the network: the method's own, or the data set's classifier."""
        return self.settings.network or self.params.profiles[self.dataset].classifier

    @property
    def fixed(self) -> Fixed | None:
        """Returns which fixed features the run's network has, or None if it has none."""
        return fixed_features.of(self.params.profiles[self.dataset], self.network)

    def build(self) -> nn.Module:
        """Returns the run's network, freshly initialised, the same each time."""
        profile = self.params.profiles[self.dataset]
        return classifier.new(
            profile.model_copy(update={"classifier": self.network}),
            seeds.derive(self.params.seed, "init", self.dataset),
            device(self.params.device),
            activation=self.settings.activation,
        )

    def account(self, client: str) -> Account:
        """Plans a client's noise within its own budget.

        Raises:
            UserError: the images that the run starts from leave nothing for its steps.
        """
        epsilon, delta = self.params.budget(client)
        if not self.start:
            return self.algorithm.new_account(epsilon, delta, self.settings)
        before = self.start.before(client)
        try:
            return self.algorithm.new_account(
                epsilon, self.start.delta(delta), self.settings, before
            )
        except ValueError:
            rule = f"small enough to leave something of epsilon {epsilon:g} by the run's own accountant"
            raise self._mistake("warm_start.share", self.settings.warm_start.share, rule) from None

    def source(self, client: str) -> Noise:
        """Returns where a client's noise comes from."""
        seed = seeds.derive(self.params.seed, "test noise", self.dataset, self.method, client)
        return noise.source(self.params.privacy.noise, seed)

    def public_images(self) -> Images:
        """Returns the server's public images, which may be none."""
        return labelled_images.load(paths.prepared(self.dataset) / "public.npz")

    def client_task(self, records: Mapping[str, Images]) -> NoisyTask:
        """Returns the task of the clients whose records these are: with accounts and noise."""
        return NoisyTask(
            build=self.build,
            data=records,
            accounts={client: self.account(client) for client in records},
            sources={client: self.source(client) for client in records},
            fixed=self.fixed,
        )

    def server_task(self, clients: Mapping[str, Sized], public: Images | None) -> NoisyTask:
        """Returns the task of a server, which has no record and no client's account."""
        return NoisyTask(build=self.build, data=clients, public=self.validation(public))

    def validation(self, public: Images | None) -> Public | None:
        """Returns the public images beside a model to score them with, or None if there are none."""
        return Public(self.build(), public) if public is not None and len(public) else None

    def entry(
        self, client: str, task: NoisyTask, data: list[str], *, details: bool = True
    ) -> Release:
        """Returns what a client's ledger enters.

        Args:
            client: whose ledger it is.
            task: has the client's account and noise.
            data: facts that tell this run from another.
            details: False leaves out what only a reader of the statement wants.
        """
        identity = self.algorithm.IDENTITY
        if self.start:
            identity |= self.start.identity.below("start")
        return noisy_release.entry(
            self.method,
            self.algorithm.VERSION,
            identity,
            self._with_features(self.statement(client, task, details=details)),
            task.accounts[client].cost,
            client=client,
            start=self.start and self.start.parameters(client),
            profile=self.params.profiles[self.dataset],
            seed=self.params.seed,
            data=data,
        )

    def statement(self, client: str, task: NoisyTask, *, details: bool = True) -> Statement:
        """Returns the statement of a client's account.

        Args:
            client: whose it is.
            task: has the client's account and noise.
            details: False leaves out what only a reader of the statement wants.
        """
        _, delta = self.params.budget(client)
        return task.accounts[client].statement(task.sources[client], delta, details=details)

    def _with_features(self, statement: Statement) -> Statement:
        """Returns the statement, which names the public numbers of fixed features."""
        if not self.fixed:
            return statement
        details = {**statement.details, "features": self.fixed.facts}
        not_covered = (*statement.not_covered, *OF_NETWORK.get(self.network, ()))
        return replace(statement, details=details, not_covered=not_covered)

    def entries(
        self, task: NoisyTask, public: Images, *, details: bool = True
    ) -> dict[str, Release]:
        """Returns what each client's ledger enters for a joint run.

        Args:
            task: of all clients, with their records.
            public: the server's images.
            details: False leaves out what only a reader of the statement wants.
        """
        facts = noisy_release.facts(self.params, task.data, public)
        return {client: self.entry(client, task, facts, details=details) for client in task.data}

    def release(
        self, records: dict[str, Images], network: Callable[[], NetworkRun] | None = None
    ) -> tuple[Path, dict[str, dict]]:
        """Makes the joint release, or finds it in the clients' ledgers.

        Args:
            records: every client's private records.
            network: runs the rounds over a network; None: in this process.

        Returns:
            The folder of the store, and {client: its statement}.

        Raises:
            UserError: no client's budget buys a step, public images are missing, or a cap refuses.
        """
        task = self.client_task(records)
        noisy_training.announce(task.accounts)
        self.check_affordable(task.accounts)
        # a network that does not fit the images, or a budget that does not fit the network, must fail
        # before anything is entered as spent
        weights = sum(array.size for array in state_of(self.build()).values())
        for account in task.accounts.values():
            account.check_released(weights)
        public = self.public_images()
        self.check_public(len(public))
        ledgers = {
            client: releases.ledger_of(self.params, self.dataset, client) for client in records
        }
        entries = releases.match_recorded(ledgers, self.entries(task, public))
        if network:
            # each client's own process enters what it releases, at every attempt
            return releases.collect_once(ledgers, entries, partial(self._collect, network))
        task = replace(task, public=self.validation(public))
        unfinished = release_store.unfinished(ledgers, entries)
        first = partial(self._first, records, task.sources)
        make = partial(
            noisy_training.train, self.algorithm, task, self.settings, first, unfinished=unfinished
        )
        store = releases.make_once(ledgers, entries, make)
        statements = {}
        for client, release in entries.items():
            statements[client] = releases.statement(
                self.params, self.dataset, client, release.fingerprint
            )
        return store, statements

    def health(self, model: State) -> Health:
        """Returns the verdict on the released model, by public images, or by its weights alone.

        No private record is read, so it costs nothing. A machine that only starts runs has no
        public images.
        """
        prepared = (paths.prepared(self.dataset) / "public.npz").exists()
        return health.check(
            model,
            state_of(self.build()),
            [self.public_images()] if prepared else [],
            build=self.build,
            seed=seeds.derive(self.params.seed, "health", self.dataset, self.method),
            remedy=health.remedy(self.dataset, f"dp_baselines.{self.method}", self.settings),
        )

    def _first(self, records: dict[str, Images], sources: dict[str, Noise]) -> tuple[State, int]:
        """Returns the weights before the first round, and the bytes of images sent for them."""
        if not self.start:
            return state_of(self.build()), 0
        return self.start.weights(self.build(), records, sources)

    def _collect(self, network: Callable[[], NetworkRun], folder: Path) -> None:
        """Fills the store with what came of a run over a network."""
        if self.start:
            raise self._mistake(
                "warm_start", "a share", "null where federation.engine is 'nvflare'"
            )
        done = network()
        noisy_training.store(folder, done.history, done.history.cost, done.spent)

    def check_public(self, count: int) -> None:
        """Raises UserError if the run looks at public images, and their number is 0."""
        field = looks_at_images(self.settings)
        if field and not count:
            rule = f"another, or {self.params.public_knob(self.dataset)} larger"
            raise self._mistake(field, getattr(self.settings, field), rule)

    def check_affordable(self, accounts: Mapping[str, Account]) -> None:
        """Raises UserError if no client's budget buys a step."""
        if not any(account.affordable for account in accounts.values()):
            most = max(account.epsilon for account in accounts.values())
            rule = f"enough for a step within some client's budget, the largest of which is epsilon {most:g}"
            asked = getattr(self.settings, "noise_multiplier", None)
            raise self._mistake("noise_multiplier", asked, rule)

    def _mistake(self, field: str, value: object, rule: str) -> Exception:
        return mistake(f"dp_baselines.{self.method}.{field}", value, rule)
