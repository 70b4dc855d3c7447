"""Plans every release that the parameters ask for, as the stages plan it, in the order of DVC.

Within a data set DVC makes the joint generators first, then each client's, then the noisy methods
one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipelines import releases
from pipelines.config import Params
from pipelines.config.generators import JOINT
from pipelines.federation import noisy_release
from pipelines.federation.noisy_run import NoisyRun
from pipelines.plan.records import Records
from pipelines.privacy.ledger import Ledger, Release
from pipelines.privacy.statement import Statement
from pipelines.synthesis import joint_release, warm_start
from pipelines.synthesis import release as generator_release
from pipelines.synthesis.client_release import ClientRelease
from pipelines.synthesis.joint_release import JointRelease


@dataclass(frozen=True)
class Part:
    """Holds one client's part of a release.

    Attributes:
        epsilon, delta: What its statement claims.
        cost: What its ledger charges.
        release: What its ledger enters, or None where no ledger can know it.
        trust: Whom the claim trusts, in a sentence, or None.
    """

    epsilon: float
    delta: float
    cost: dict
    release: Release | None
    trust: str | None = None


@dataclass(frozen=True)
class Candidate:
    """Holds one release that a stage makes.

    Attributes:
        name: Of the generator or noisy method.
        stage: The stage's name in dvc.yaml.
        parts: By client. A generator's has one, a joint generator's those of its group, and a
            noisy run's all.
        is_joint: True if several clients make it together.
        is_apart: True if each of them enters its part in a process of its own, over a network.
    """

    name: str
    stage: str
    parts: dict[str, Part]
    is_joint: bool
    is_apart: bool = False


def all_of(
    params: Params, dataset: str, ledgers: dict[str, Ledger], records: Records
) -> Iterator[Candidate]:
    """Yields the releases of a data set.

    Args:
        params: The parameters.
        dataset: The data set's name.
        ledgers: The ledger of each client.
        records: What the releases read.

    Raises:
        UserError: A stage would refuse its plan.
    """
    generators = params.synthesis.generators
    for generator in generators:
        if generator in JOINT:
            yield from _of_groups(params, dataset, generator, records)
    separate = [generator for generator in generators if generator not in JOINT]
    for client in params.clients:
        for generator in separate:
            yield _of_generator(params, dataset, client, generator, records)
    for method in params.dp_baselines.algorithms:
        if not params.left_out(dataset, method):
            yield _of_method(params, dataset, method, ledgers, records)


def _of_groups(
    params: Params, dataset: str, generator: str, records: Records
) -> Iterator[Candidate]:
    if params.federation.is_remote:
        # the clients make it over the network (pipelines/joint), and no stage does
        return
    for clients in joint_release.groups(params):
        planned = JointRelease(params, dataset, generator, clients)
        statement = planned.statement
        parts = {}
        for client, entry in planned.entries(records.train).items():
            parts[client] = _part(statement, entry.cost, entry)
        is_joint = len(clients) > 1
        yield Candidate(generator, f"joint_release@{dataset}", parts, is_joint=is_joint)


def _of_generator(
    params: Params, dataset: str, client: str, generator: str, records: Records
) -> Candidate:
    planned = ClientRelease(params, dataset, client, generator)
    entry = planned.entry(records.train[client])
    statement = generator_release.described(planned.plan, planned.source)
    stage = f"train_generator@{dataset}-{client}-{generator}"
    return Candidate(
        generator, stage, {client: _part(statement, entry.cost, entry)}, is_joint=False
    )


def _of_method(
    params: Params, dataset: str, method: str, ledgers: dict[str, Ledger], records: Records
) -> Candidate:
    run = NoisyRun(params, dataset, method, warm_start.joint_start(params, dataset, method))
    task = run.client_task(records.train)
    run.check_affordable(task.accounts)
    if records.are_known:
        run.check_public(len(records.public))
    # 1. without an entry of these records there is nothing to compare the facts with
    facts = noisy_release.facts(params, records.train, records.public)
    code = (method, run.algorithm.VERSION, releases.digest_of_all(facts))
    entries: dict[str, Release] = {}
    is_apart = params.federation.engine != "inprocess"
    if is_apart or any(ledger.may_know(*code) for ledger in ledgers.values()):
        entries = run.entries(task, records.public, details=False)
    # 2. what it costs follows from the accounts
    parts = {}
    for client, account in task.accounts.items():
        statement = run.statement(client, task, details=False)
        cost = noisy_release.charged(account.cost, statement)
        parts[client] = _part(statement, cost, entries.get(client))
    stage = f"train_dp_baseline@{dataset}-{method}"
    return Candidate(method, stage, parts, is_joint=True, is_apart=is_apart)


def _part(statement: Statement, cost: dict, entry: Release | None) -> Part:
    return Part(statement.epsilon, statement.delta, cost, entry, statement.trust)
