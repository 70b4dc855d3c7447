"""Draws how records are dealt to clients, by one of several schemes.

The schemes are label skew (Dirichlet), label shards, quantity skew, and iid. A scheme yields draws:
lists of record positions, one array per client. `partitions.deal` takes the first draw that gives
every client enough records. The scheme `natural` draws nothing (owners.by_client).

>>> settings = Partition.model_construct(clients=["c0", "c1"])
>>> parts = next(iid(np.zeros(5), settings, np.random.default_rng(0)))
>>> [len(part) for part in parts]
[3, 2]
"""

from collections.abc import Iterator

import numpy as np

from pipelines.config.data import Partition

TRIES = 10_000


def dirichlet(
    labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Yields draws of label skew with NIID-Bench's balancing rule.

    Per class, shares ~ Dirichlet(alpha). A client that already holds its even part of all records
    gets a share of zero.

    Args:
        labels: int64 [n], the labels of all records.
        settings: `clients` and `alpha` apply.
        rng: The random stream.
    """
    for _ in range(TRIES):
        parts = _dirichlet_draw(labels, settings, rng)
        if parts is not None:
            yield [np.array(part, dtype=np.int64) for part in parts]


def _dirichlet_draw(
    labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> list[list[int]] | None:
    """Returns one draw, or None if all the mass of a class fell on full clients."""
    count = len(settings.clients)
    parts: list[list[int]] = [[] for _ in range(count)]
    for label in np.unique(labels):
        records = rng.permutation(np.flatnonzero(labels == label))
        shares = rng.dirichlet(np.full(count, settings.alpha))
        shares *= [len(part) < len(labels) / count for part in parts]
        if not shares.sum() > 0:
            return None
        cuts = (np.cumsum(shares / shares.sum()) * len(records)).astype(int)[:-1]
        for part, piece in zip(parts, np.split(records, cuts)):
            part.extend(piece.tolist())
    return parts


def label_shards(
    labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Yields one draw of pieces of few labels (McMahan et al. 2017).

    Records are sorted by label and cut into equal pieces, of which each client gets
    `shards_per_client`.

    Args:
        labels: int64 [n], the labels of all records.
        settings: `clients` and `shards_per_client` apply.
        rng: The random stream.
    """
    count = len(settings.clients)
    by_label = rng.permutation(len(labels))
    by_label = by_label[np.argsort(labels[by_label], kind="stable")]
    pieces = np.array_split(by_label, count * settings.shards_per_client)
    parts = []
    for client_pieces in rng.permutation(len(pieces)).reshape(count, -1):
        parts.append(np.concatenate([pieces[piece] for piece in client_pieces]))
    yield parts


def quantity(
    labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Yields draws of quantity skew (NIID-Bench): iid records, sizes in shares ~ Dirichlet(alpha).

    Args:
        labels: int64 [n], the labels of all records.
        settings: `clients` and `alpha` apply.
        rng: The random stream.
    """
    order = rng.permutation(len(labels))
    for _ in range(TRIES):
        shares = rng.dirichlet(np.full(len(settings.clients), settings.alpha))
        yield np.split(order, (np.cumsum(shares)[:-1] * len(order)).astype(int))


def iid(
    labels: np.ndarray, settings: Partition, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Yields one draw of equal parts of shuffled records.

    Args:
        labels: int64 [n], the labels of all records.
        settings: `clients` applies.
        rng: The random stream.
    """
    yield np.array_split(rng.permutation(len(labels)), len(settings.clients))


SCHEMES = {"dirichlet": dirichlet, "shards": label_shards, "quantity": quantity, "iid": iid}
