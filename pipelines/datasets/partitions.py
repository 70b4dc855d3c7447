"""How records are dealt to clients: label skew (Dirichlet), label shards, quantity skew, or iid; simulated silos."""

import copy
from collections.abc import Iterator
from itertools import islice

import numpy as np

from pipelines.config.data import Partition
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from pipelines.errors import UserError

TRIES = 10_000
ADVISED = 500  # draws among which a `min_records` that works is looked for, once one did not
LEAST = (
    4  # records on either side of check_quality: precision and recall look at the third neighbour
)


def deal(
    labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Disjoint record positions per client, by the named scheme.

    Raises:
        UserError: there are more clients than records, or the scheme cannot give each client `min_records`.
    """
    clients = settings.clients
    if len(labels) < len(clients):
        raise UserError(
            f"The 'clients' parameter of partition must name at most as many clients as there are training records. "
            f"Got {len(clients)} clients for {len(labels)} records instead. (params.yaml)"
        )
    start = copy.deepcopy(rng)
    for parts in SCHEMES[settings.scheme](labels, settings, rng):
        if min(map(len, parts)) >= settings.min_records:
            return {client: np.sort(part) for client, part in zip(clients, parts)}
    raise UserError(
        f"The 'min_records' parameter of partition must be reachable, and no draw of {len(labels)} records for "
        f"{len(clients)} clients ({settings.scheme}) reached it. {_advice(labels, settings, start)} "
        f"Got {settings.min_records} instead. (params.yaml)"
    )


# A scheme yields draws, lists of positions for each client, of which `deal` takes the first that is even enough.


def dirichlet(
    labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Label skew with NIID-Bench's balancing rule: per class, shares ~ Dirichlet(alpha), zero for a client that
    already holds its even part of all records."""
    count = len(settings.clients)
    for _ in range(TRIES):
        parts: list[list[int]] = [[] for _ in range(count)]
        for label in np.unique(labels):
            records = rng.permutation(np.flatnonzero(labels == label))
            shares = rng.dirichlet(np.full(count, settings.alpha))
            shares *= [len(part) < len(labels) / count for part in parts]
            if not shares.sum() > 0:  # all the mass fell on full clients: a draw to discard, whole
                break
            cuts = (np.cumsum(shares / shares.sum()) * len(records)).astype(int)[:-1]
            for part, piece in zip(parts, np.split(records, cuts)):
                part.extend(piece.tolist())
        else:
            yield [np.array(part, dtype=np.int64) for part in parts]


def label_shards(
    labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Sorted by label, cut into equal pieces, `shards_per_client` of them dealt to each (McMahan et al. 2017)."""
    count = len(settings.clients)
    by_label = rng.permutation(len(labels))
    by_label = by_label[np.argsort(labels[by_label], kind="stable")]
    pieces = np.array_split(by_label, count * settings.shards_per_client)
    order = rng.permutation(len(pieces)).reshape(count, -1)
    yield [np.concatenate([pieces[piece] for piece in own]) for own in order]


def quantity(
    labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Quantity skew (NIID-Bench): iid records, sizes in shares ~ Dirichlet(alpha)."""
    order = rng.permutation(len(labels))
    for _ in range(TRIES):
        shares = rng.dirichlet(np.full(len(settings.clients), settings.alpha))
        yield np.split(order, (np.cumsum(shares)[:-1] * len(order)).astype(int))


def iid(
    labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    yield np.array_split(rng.permutation(len(labels)), len(settings.clients))


SCHEMES = {"dirichlet": dirichlet, "shards": label_shards, "quantity": quantity, "iid": iid}


def split(labels: np.ndarray, fractions: list[float], rng: np.random.Generator) -> list[np.ndarray]:
    """Disjoint positions: one part per fraction and the rest last, each close to its fraction of every class.

    The records are shuffled, sorted by class and dealt out in turn, so classes with a single record work too.
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
    """The small client keeps `keep` of its training records; the surplus is dealt to the others, so nothing is lost
    and its own test part stays large enough to measure it."""
    shuffled = rng.permutation(train[client])
    others = [name for name in train if name != client]
    extra = dict(zip(others, np.array_split(shuffled[keep:], len(others)))) if others else {}
    return {
        name: np.sort(shuffled[:keep] if name == client else np.concatenate([own, extra[name]]))
        for name, own in train.items()
    }


def cut(pool: Images, settings: Partition, rng: np.random.Generator) -> dict[str, Shard]:
    """Deals the pool to the clients and splits each shard.

    Raises:
        UserError: `deal`'s, or a client got too few records to be trained or scored.
    """
    start = copy.deepcopy(rng)
    parts = _split(deal(pool.labels, settings, rng), pool.labels, settings, rng)
    for client, (train, validation, test) in parts.items():
        if not _enough(len(train), len(validation), len(test)):
            raise UserError(
                f"The 'min_records' parameter of partition must leave every client {LEAST} records to train on, and "
                f"{LEAST} to validate and test on, some for each; {client} got {len(train)}, {len(validation)} and "
                f"{len(test)}. {_advice(pool.labels, settings, start)} Got {settings.min_records} instead. "
                "(params.yaml)"
            )
    return {client: Shard(*(pool[positions] for positions in own)) for client, own in parts.items()}


def _split(
    dealt: dict[str, np.ndarray], labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """{client: its positions (train, validation, test)}."""
    fractions, parts = [settings.test_fraction, settings.validation_fraction], {}
    for client, own in dealt.items():
        parts[client] = [own[positions] for positions in split(labels[own], fractions, rng)]
    train = {client: rest for client, (_, _, rest) in parts.items()}
    if settings.small:
        train = few_labels(train, settings.small.client, settings.small.train_records, rng)
    return {
        client: (train[client], validation, test) for client, (test, validation, _) in parts.items()
    }


def _enough(train: int, validation: int, test: int) -> bool:
    return min(validation, test) > 0 and min(validation + test, train) >= LEAST


def _advice(labels: np.ndarray, settings: Partition, rng: np.random.Generator) -> str:
    """Returns a sentence on the value to put there.

    rng: as it was before the first draw, so that the value stands for the draw it was found in: the first at which no
    client has fewer records.
    """
    works, most, unused = (
        None,
        0,
        np.random.default_rng(0),
    )  # how many records a part has, no chance decides
    for parts in islice(SCHEMES[settings.scheme](labels, settings, rng), ADVISED):
        least = min(map(len, parts))
        if least > most:
            most, dealt = least, dict(zip(settings.clients, parts))
            sizes = [map(len, own) for own in _split(dealt, labels, settings, unused).values()]
            works = least if all(_enough(*own) for own in sizes) else works
    if works:
        return f"A value of {works} works."
    even = "" if settings.scheme == "iid" else " or scheme 'iid'"
    return (
        f"No value works here: name fewer clients, or take larger fractions{even}, or more records."
    )
