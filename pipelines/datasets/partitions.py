"""Deals records to clients, which become simulated silos.

`partition_schemes` has the schemes by which records are dealt. With the scheme `natural` each
record goes to the client that holds its owner's site (`owners`), and no chance takes part.

>>> labels = np.arange(12) % 3
>>> train, test = split(labels, [0.75], np.random.default_rng(0))
>>> np.bincount(labels[train]), np.bincount(labels[test])
(array([3, 3, 3]), array([1, 1, 1]))
"""

import copy
from itertools import islice

import numpy as np

from pipelines.config.data import Partition
from pipelines.config.values import mistake
from pipelines.datasets import owners
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.partition_schemes import SCHEMES
from pipelines.datasets.shards import Shard
from pipelines.errors import UserError

# draws among which a `min_records` that works is looked for, once one did not
ADVISED = 500
# records on either side of check_quality: precision and recall look at the third neighbour
LEAST = 4


def deal(
    labels: np.ndarray,
    settings: Partition,
    rng: np.random.Generator,
    record_owners: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Returns disjoint record positions per client, by the named scheme.

    Args:
        labels: int64 [n], the labels of all records.
        settings: The settings of `partition`.
        rng: The random stream.
        record_owners: strings [n], the site of each record, for the scheme `natural`.

    Raises:
        UserError: There are more clients than records, the scheme cannot give each client
            `min_records`, or the owners and the clients do not fit together.
    """
    clients = settings.clients
    if len(labels) < len(clients):
        raise UserError(
            "The 'clients' parameter of partition must name at most as many clients as there are "
            f"training records. Got {len(clients)} clients for {len(labels)} records instead. "
            "(params.yaml)"
        )
    if settings.scheme == "natural":
        return _natural(settings, record_owners)
    start = copy.deepcopy(rng)
    draws = SCHEMES[settings.scheme](labels, settings, rng)
    if len(labels) < len(clients) * settings.min_records:
        draws = ()  # ten thousand of them would all fail
    for parts in draws:
        if min(map(len, parts)) >= settings.min_records:
            return {client: np.sort(part) for client, part in zip(clients, parts)}
    raise UserError(
        f"The 'min_records' parameter of partition must be reachable, and no draw of {len(labels)} "
        f"records for {len(clients)} clients ({settings.scheme}) reached it. "
        f"{_advice(labels, settings, start)} Got {settings.min_records} instead. (params.yaml)"
    )


def _natural(settings: Partition, record_owners: np.ndarray | None) -> dict[str, np.ndarray]:
    parts = dict(zip(settings.clients, owners.by_client(record_owners, settings)))
    smallest = min(parts, key=lambda client: len(parts[client]))
    count = len(parts[smallest])
    if count < settings.min_records:
        rule = (
            f"at most {count}, the number of records of {smallest}, for scheme 'natural' deals no "
            "record to another client"
        )
        raise mistake("partition.min_records", settings.min_records, rule)
    return parts


def split(labels: np.ndarray, fractions: list[float], rng: np.random.Generator) -> list[np.ndarray]:
    """Splits records into parts that are each close to their fraction of every class.

    The records are shuffled, sorted by class and dealt out in turn, so classes with a single record
    work too.

    Args:
        labels: int64 [n].
        fractions: The share of each part but the last, in [0, 1].
        rng: The random stream.

    Returns:
        Disjoint sorted positions: one part per fraction, and the rest last.
    """
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    owner = np.full(len(order), len(fractions))
    for part, fraction in enumerate(fractions):
        free = np.flatnonzero(owner == len(fractions))
        share = fraction / (1 - sum(fractions[:part]))
        steps = np.floor(np.arange(1, len(free) + 1) * share + 0.5)
        owner[free[np.diff(steps, prepend=0) > 0]] = part
    return [np.sort(order[owner == part]) for part in range(len(fractions) + 1)]


def few_labels(
    train: dict[str, np.ndarray], client: str, keep: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Takes training records from the small client and deals them to the others.

    So nothing is lost, and its own test part stays large enough to measure it.

    Args:
        train: Positions of the training records by client.
        client: The small client.
        keep: How many training records remain with it.
        rng: The random stream.
    """
    shuffled = rng.permutation(train[client])
    others = [name for name in train if name != client]
    extra = iter(np.array_split(shuffled[keep:], len(others)) if others else [])
    positions = {}
    for name, client_positions in train.items():
        if name == client:
            positions[name] = np.sort(shuffled[:keep])
        else:
            positions[name] = np.sort(np.concatenate([client_positions, next(extra)]))
    return positions


def cut(pool: Images, settings: Partition, rng: np.random.Generator) -> dict[str, Shard]:
    """Deals the pool to the clients and splits each shard.

    With `records_per_client`, so many per client are drawn from the pool, and classes keep their
    shares. Nobody gets the rest.

    Args:
        pool: All training records.
        settings: The settings of `partition`.
        rng: The random stream.

    Raises:
        UserError: As `deal`, the pool is too small for `records_per_client`, or a client got too
            few records to be trained or scored.
    """
    if settings.records_per_client:
        pool = _drawn(pool, settings, rng)
    start = copy.deepcopy(rng)
    dealt = deal(pool.labels, settings, rng, pool.owners)
    parts = _split(dealt, pool.labels, settings, rng)
    for client, (train, validation, test) in parts.items():
        if not _enough(len(train), len(validation), len(test)):
            raise UserError(
                f"The 'min_records' parameter of partition must leave every client {LEAST} records "
                f"to train on, and {LEAST} to validate and test on, some for each; {client} got "
                f"{len(train)}, {len(validation)} and {len(test)}. "
                f"{_advice(pool.labels, settings, start)} Got {settings.min_records} instead. "
                "(params.yaml)"
            )
    shards = {}
    for client, (train, validation, test) in parts.items():
        shards[client] = Shard(pool[train], pool[validation], pool[test])
    return shards


def _drawn(pool: Images, settings: Partition, rng: np.random.Generator) -> Images:
    """Returns as many records as all clients together are to get."""
    wanted = settings.records_per_client * len(settings.clients)
    if wanted > len(pool):
        raise UserError(
            "The 'records_per_client' parameter of partition must be null or at most "
            f"{len(pool) // len(settings.clients)}, for {len(settings.clients)} clients share "
            f"{len(pool)} records. Got {settings.records_per_client} instead. (params.yaml)"
        )
    chosen, _ = split(pool.labels, [wanted / len(pool)], rng)
    return pool[chosen]


def _split(
    dealt: dict[str, np.ndarray], labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Returns, by client, its positions (train, validation, test)."""
    fractions = [settings.test_fraction, settings.validation_fraction]
    train = {}
    held_back = {}
    for client, positions in dealt.items():
        test, validation, rest = split(labels[positions], fractions, rng)
        train[client] = positions[rest]
        held_back[client] = (positions[validation], positions[test])
    if settings.small:
        train = few_labels(train, settings.small.client, settings.small.train_records, rng)
    return {client: (train[client], *held_back[client]) for client in dealt}


def _enough(train: int, validation: int, test: int) -> bool:
    return min(validation, test) > 0 and min(validation + test, train) >= LEAST


def _advice(labels: np.ndarray, settings: Partition, rng: np.random.Generator) -> str:
    """Returns a sentence on the value to put there.

    Args:
        labels: int64 [n], the labels of all records.
        settings: The settings of `partition`.
        rng: The stream as it was before the first draw, so that the value stands for the draw it
            was found in: the first at which no client has fewer records.
    """
    if settings.scheme == "natural":
        return (
            "Scheme 'natural' deals no record to another client: give the client more sites, name "
            "fewer clients, or take larger fractions."
        )
    works = None
    most = 0
    # how many records a part has, no chance decides
    unused = np.random.default_rng(0)
    for parts in islice(SCHEMES[settings.scheme](labels, settings, rng), ADVISED):
        least = min(map(len, parts))
        if least > most:
            most = least
            dealt = dict(zip(settings.clients, parts))
            split_parts = _split(dealt, labels, settings, unused).values()
            if all(_enough(*map(len, client_parts)) for client_parts in split_parts):
                works = least
    if works:
        return f"A value of {works} works."
    even = "" if settings.scheme == "iid" else " or scheme 'iid'"
    return (
        f"No value works here: name fewer clients, or take larger fractions{even}, or more records."
    )
