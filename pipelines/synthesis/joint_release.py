"""Says what the generator of several clients releases, before it is made: plan, noise, ledger entries.

The stage `joint_release` makes it, and `pipelines.plan` announces it. Both follow from here.

Clients with one budget release together, from three on (`groups`). To plan the noise of all for the
strictest budget would cost the others more than they gain (docs/secure_sums.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType

import numpy as np

from pipelines import releases, seeds
from pipelines.config import Params
from pipelines.datasets import shards
from pipelines.datasets.labelled_images import Images
from pipelines.privacy import noise
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Release
from pipelines.privacy.noise import Noise
from pipelines.privacy.secure_sums.in_process import Summation
from pipelines.privacy.secure_sums.terms import FEWEST
from pipelines.privacy.statement import Statement
from pipelines.synthesis import base, release
from pipelines.synthesis.base import Plan
from pipelines.synthesis.joint_moments import Group

State = dict[str, np.ndarray]


def groups(params: Params) -> list[tuple[str, ...]]:
    """Returns the clients that release together. Who finds no two others of its budget is alone.

    Args:
        params: The parameters of the project.
    """
    by_budget: dict[tuple[float, float], list[str]] = {}
    for client in params.clients:
        by_budget.setdefault(params.budget(client), []).append(client)
    found = []
    for clients in by_budget.values():
        if len(clients) < FEWEST:
            found += [(client,) for client in clients]
        else:
            found.append(tuple(clients))
    return found


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
        """Returns who makes the release together, and whom its noise holds against."""
        clients = len(self.clients)
        if clients == 1 or self.params.privacy.trust == "none":
            return Group(clients, clients - 1)
        settings = self.params.generator(self.dataset, self.generator)
        return Group(clients, settings.number_colluding(clients))

    @cached_property
    def plan(self) -> Plan:
        """Returns what was decided about the release, by public numbers alone.

        Raises:
            UserError: The plan is impossible.
        """
        settings = self.params.generator(self.dataset, self.generator)
        space = release.public_space(self.params.profiles[self.dataset])
        budget = Budget(*self.params.budget(self.clients[0]))
        return self.module.plan_together(settings, budget, space, self.group)

    @cached_property
    def sources(self) -> dict[str, Noise]:
        """Returns where each client's share of the noise comes from."""
        sources = {}
        for client in self.clients:
            test_seed = seeds.derive(self.params.seed, "test noise", *self._names, client)
            sources[client] = noise.source(self.params.privacy.noise, test_seed)
        return sources

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
        entry = release.entry(
            self.generator,
            self.module.VERSION,
            self.module.IDENTITY,
            self.plan,
            self.statement,
            data=releases.digest_of_all(facts),
            seed=seeds.derive(self.params.seed, *self._names),
        )
        entries = {}
        for client in members:
            entries[client] = replace(entry, parameters={**entry.parameters, "client": client})
        return entries

    def fit(self, train: Mapping[str, Images], entries: Mapping[str, Release]) -> State:
        """Makes the release, and returns the generator's state.

        Args:
            train: As in `entries`.
            entries: What each client's ledger has entered, from `entries`.

        Raises:
            UserError: There is no sum.
        """
        if len(self.clients) == 1:
            (client,) = self.clients
            return self.module.fit(train[client], self.plan, self.sources[client], seed=0)
        names = [entries[client].fingerprint for client in sorted(entries)]
        sums = Summation(releases.digest_of_all(names), self.plan.shares, self.sources)
        members = {client: train[client] for client in self.clients}
        return self.module.fit_together(members, self.plan, sums)

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
        UserError: A plan is impossible, or a ledger refuses. Of this group nothing was spent then.
    """
    profile = params.profiles[dataset]
    stores = {}
    for clients in groups(params):
        planned = JointRelease(params, dataset, generator, clients)
        release.announce(planned.plan, f"{dataset}/{'+'.join(clients)}/{generator}", generators=1)
        train = {client: shards.read(dataset, client, "train", profile) for client in clients}
        ledgers = {client: releases.ledger_of(params, dataset, client) for client in clients}
        entries = releases.match_recorded(ledgers, planned.entries(train))
        make = partial(_make, planned, train, entries)
        stores |= dict.fromkeys(clients, releases.make_once(ledgers, entries, make))
    return stores


def _make(
    planned: JointRelease,
    train: Mapping[str, Images],
    entries: Mapping[str, Release],
    folder: Path,
) -> None:
    """Makes the release of one group, and writes its result into an empty folder."""
    state = planned.fit(train, entries)
    names = {client: entry.fingerprint for client, entry in entries.items()}
    release.save_joint(folder, state, planned.plan, names)
