"""Says what the generator of several clients releases, before it is made: plan, noise, ledger entries.

The stage `joint_release` makes it, and `pipelines.plan` announces it. Both follow from here.

Clients with one budget release together, from three on (`groups`). One noise for the strictest of
several budgets was measured, and was behind the clients' own releases (docs/secure_sums.md). Over a
network the roster says who releases together, and each client makes its part by itself
(`joint_apart`).
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType

import numpy as np

from pipelines import releases, seeds
from pipelines.config import Params
from pipelines.datasets import shards
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.privacy import noise
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Ledger, Release
from pipelines.privacy.noise import Noise
from pipelines.privacy.secure_sums.in_process import Summation
from pipelines.privacy.secure_sums.terms import FEWEST
from pipelines.privacy.statement import Statement
from pipelines.synthesis import base, release
from pipelines.synthesis.joint_fit import Member, fit_together
from pipelines.synthesis.joint_plan import ALONE, Group, JointPlan

State = dict[str, np.ndarray]


def groups(params: Params) -> list[tuple[str, ...]]:
    """Returns the clients that release together. Who finds no two others of its budget is alone.

    Over a network it is the whole roster, of which one side may have a single client.

    Args:
        params: The parameters of the project.
    """
    if params.federation.is_remote:
        return [tuple(sorted(params.federation.roster))]
    by_budget: dict[tuple[float, float], list[str]] = {}
    for client in params.clients:
        by_budget.setdefault(params.budget(client), []).append(client)
    formed = []
    for clients in by_budget.values():
        if len(clients) < FEWEST:
            formed += [(client,) for client in clients]
        else:
            formed.append(tuple(clients))
    return formed


@dataclass(frozen=True)
class JointRelease:
    """Names one release that clients of one budget make together, or that one makes alone.

    Attributes:
        params: The parameters of the project.
        dataset: The data set's name.
        generator: The generator's name, one of `config.generators.JOINT`.
        clients: The clients, from `groups`.
    """

    params: Params
    dataset: str
    generator: str
    clients: tuple[str, ...]

    @property
    def module(self) -> ModuleType:
        """Returns the module of the generator."""
        return base.load(self.generator)

    @property
    def group(self) -> Group:
        """Returns who makes the release together, and whom its noise holds against.

        Raises:
            UserError: More may drop out than its clients' trust allows.
        """
        clients = len(self.clients)
        if clients == 1:
            return ALONE
        settings = self.params.generator(self.dataset, self.generator)
        colluding = settings.number_colluding(clients)
        if self.params.privacy.trust == "none":
            colluding = clients - 1
        group = Group(clients, colluding, settings.may_drop)
        if group.may_drop > group.most_drops:
            raise UserError(
                f"The 'may_drop' parameter of synthesis.{self.generator} must be an integer in "
                f"[0, {group.most_drops}] where {colluding} of {clients} clients may collude. Got "
                f"{group.may_drop} instead. (settings/generators.yaml)"
            )
        return group

    @cached_property
    def plan(self) -> JointPlan:
        """Returns what was decided about the release, by public numbers alone.

        Raises:
            UserError: The plan is impossible, or the clients ask for different budgets.
        """
        settings = self.params.generator(self.dataset, self.generator)
        space = release.public_space(self.params.profiles[self.dataset], self._records)
        return self.module.plan_together(settings, Budget(*self.budget), space, self.group)

    @property
    def _records(self) -> int | None:
        """Returns about how many records all clients have, from public numbers alone.

        Who is on another machine counts as the mean of those of these parameters. It is None if
        nobody declared a number.
        """
        known = []
        for client in self.clients:
            if client in self.params.clients:
                known.append(self.params.public_records(self.dataset, client))
        if None in known:
            return None
        return round(sum(known) / len(known) * len(self.clients))

    @property
    def budget(self) -> tuple[float, float]:
        """Returns epsilon and delta of those clients that these parameters have.

        Raises:
            UserError: They ask for different ones.
        """
        budgets = {}
        for client in self.clients:
            if client in self.params.clients:
                budgets[self.params.budget(client)] = client
        if len(budgets) > 1:
            raise UserError(
                f"Clients that release together ask for one epsilon and delta, and "
                f"{' and '.join(budgets.values())} do not."
            )
        return next(iter(budgets))

    @property
    def seed(self) -> int:
        """Returns the seed of everything random but the noise."""
        return seeds.derive(self.params.seed, *self._names)

    @cached_property
    def sources(self) -> dict[str, Noise]:
        """Returns where each client's share of the noise comes from."""
        return {client: self.source(client) for client in self.clients}

    def source(self, client: str) -> Noise:
        """Returns where a client's share of the noise comes from."""
        test_seed = seeds.derive(self.params.seed, "test noise", *self._names, client)
        return noise.source(self.params.privacy.noise, test_seed)

    @property
    def statement(self) -> Statement:
        """Returns the plan's statement with the noise it will be made with."""
        return release.described(self.plan, next(iter(self.sources.values())))

    def entries(self, train: Mapping[str, Images]) -> dict[str, Release]:
        """Returns what each client's ledger enters.

        The total depends on the records of all members. So if one's change, all release anew.

        Args:
            train: The training part of each client's shard, of these clients and maybe others.
        """
        members = sorted(self.clients)
        facts = [f"{client} {releases.digest(train[client])}" for client in members]
        data = releases.digest_of_all(facts)
        return {client: self.entry(client, data) for client in members}

    def entry(self, client: str, data: str) -> Release:
        """Returns what one client's ledger enters.

        Args:
            client: The client.
            data: The hash of what the release reads.
        """
        entry = release.entry(
            self.generator,
            self.module.VERSION,
            self.module.IDENTITY,
            self.plan,
            self.statement,
            data=data,
            seed=self.seed,
        )
        return replace(entry, parameters={**entry.parameters, "client": client})

    def fit(self, train: Mapping[str, Images]) -> State:
        """Makes the release, and returns the generator's state.

        Args:
            train: As in `entries`.

        Raises:
            UserError: There is no sum.
        """
        if len(self.clients) == 1:
            (client,) = self.clients
            where = base.Where(self.params.device)
            return self.module.fit(train[client], self.plan, self.sources[client], self.seed, where)
        sums = Summation(self.new_name(), self.sources)
        members = []
        for client in self.clients:
            member = self.member(client, train[client])
            members.append(replace(member, beside=len(self.clients)))
        return fit_together(self.module, members, self.plan, sums)

    def member(self, client: str, records: Images) -> Member:
        """Returns what a client has its part from.

        Args:
            client: The client.
            records: The training part of its shard.
        """
        return Member(client, records, self.seed, base.Where(self.params.device))

    def new_name(self) -> str:
        """Returns a name that no other release has. All clients and the server know it.

        It says nothing of the records.
        """
        return f"{self.dataset} {self.generator} {secrets.token_hex(8)}"

    @property
    def _names(self) -> tuple[str, ...]:
        return ("joint_release", self.dataset, self.generator)


def made(params: Params, dataset: str, generator: str) -> dict[str, Path]:
    """Makes each group's release once, and returns where the result of each client's is stored.

    Args:
        params: The parameters of the project.
        dataset: The data set's name.
        generator: The generator's name.

    Raises:
        UserError: A plan is impossible, or a ledger refuses. Nothing was spent then.
    """
    ready = []
    for clients in groups(params):
        group = _Ready.of(JointRelease(params, dataset, generator, clients))
        group.check()
        ready.append(group)
    stores = {}
    for group in ready:
        stores |= dict.fromkeys(group.planned.clients, group.made())
    return stores


@dataclass(frozen=True)
class _Ready:
    """Holds a release that is about to be made.

    Attributes:
        planned: Which it is.
        train: The training part of each client's shard.
        ledgers: Each client's ledger.
        entries: What each of them enters.
    """

    planned: JointRelease
    train: dict[str, Images]
    ledgers: dict[str, Ledger]
    entries: dict[str, Release]

    @classmethod
    def of(cls, planned: JointRelease) -> "_Ready":
        """Returns a planned release with its clients' records and ledgers."""
        params = planned.params
        dataset = planned.dataset
        train = {}
        ledgers = {}
        for client in planned.clients:
            train[client] = shards.read(dataset, client, "train", params.profiles[dataset])
            ledgers[client] = releases.ledger_of(params, dataset, client)
        entries = releases.match_recorded(ledgers, planned.entries(train))
        return cls(planned, train, ledgers, entries)

    def check(self) -> None:
        """Refuses what a ledger would refuse, before any group's release is made.

        Raises:
            UserError: A ledger would refuse it.
        """
        with releases.as_user_error():
            for client, ledger in self.ledgers.items():
                ledger.check(self.entries[client])

    def made(self) -> Path:
        """Makes the release once, and returns where its result is stored."""
        planned = self.planned
        name = f"{planned.dataset}/{'+'.join(planned.clients)}/{planned.generator}"
        release.announce(planned.plan, name, generators=1)
        return releases.make_once(self.ledgers, self.entries, self._make)

    def _make(self, folder: Path) -> None:
        """Fills an empty folder with the result."""
        state = self.planned.fit(self.train)
        names = {client: entry.fingerprint for client, entry in self.entries.items()}
        release.save_joint(folder, state, self.planned.plan, names)
