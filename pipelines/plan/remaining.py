"""Counts the releases that a client's lifetime cap leaves room for."""

from dataclasses import dataclass

from pipelines import release_totals, words
from pipelines.config import Params
from pipelines.plan import candidates, records
from pipelines.privacy.accounting.calibration import largest
from pipelines.privacy.ledger import Ledger

# releases of one kind that are counted; more are as good as many
MOST = 50
HEAD = (
    "How many more releases each client's cap leaves room for, if all of them are of one kind, at "
    "its current settings."
)


@dataclass(frozen=True)
class Room:
    """Says how many releases of one kind fit under the caps.

    Attributes:
        name: Of the generator or noisy method.
        counts: {client with a cap: how many more, at most MOST}.
        together: {clients that make it together: how many more they all have room for}.
    """

    name: str
    counts: dict[str, int]
    together: dict[tuple[str, ...], int]


def room(ledger: Ledger, cost: dict) -> int:
    """Returns how many more releases of this cost a ledger with a cap would take, at most MOST.

    Args:
        ledger: The client's ledger.
        cost: What each of them would be charged.
    """

    def fits(count: int) -> bool:
        return not release_totals.after(ledger, [cost] * count).is_above_cap

    return largest(fits, MOST)


def of(params: Params, dataset: str, ledgers: dict[str, Ledger]) -> list[Room]:
    """Returns the room for each generator and each noisy method of a data set.

    Args:
        params: The parameters.
        dataset: The data set's name.
        ledgers: The ledger of each client.

    Raises:
        UserError: A stage would refuse its plan, or a ledger was tampered with.
    """
    kinds: dict[str, Room] = {}
    for candidate in candidates.all_of(params, dataset, ledgers, records.nobodys(params)):
        kind = kinds.setdefault(candidate.name, Room(candidate.name, {}, {}))
        counts = {}
        for client, part in candidate.parts.items():
            if ledgers[client].lifetime_epsilon is not None:
                counts[client] = room(ledgers[client], part.cost)
        kind.counts.update(counts)
        if candidate.is_joint and counts:
            kind.together[tuple(candidate.parts)] = min(counts.values())
    return list(kinds.values())


def lines(params: Params, dataset: str, ledgers: dict[str, Ledger]) -> list[str]:
    """Returns what the command prints of a data set.

    Args:
        params: The parameters.
        dataset: The data set's name.
        ledgers: The ledger of each client.

    Raises:
        UserError: A stage would refuse its plan, or a ledger was tampered with.
    """
    capped = {}
    for client, ledger in ledgers.items():
        if ledger.lifetime_epsilon is not None:
            capped[client] = ledger
    free = [client for client in ledgers if client not in capped]
    written = []
    if free:
        written.append(f"{dataset}, {words.names(free)}: no cap, so that any number is allowed.")
    if not capped:
        return written
    kinds = of(params, dataset, ledgers)
    blocks = {}
    for client, ledger in capped.items():
        counts = {kind.name: kind.counts[client] for kind in kinds}
        standing = f"{release_totals.after(ledger).standing}; room for"
        blocks[client] = "\n".join([standing, *_table(counts)])
    written += [f"{dataset}, {block}" for block in words.by_client(blocks)]
    phrases = []
    for kind in kinds:
        for clients, count in kind.together.items():
            some = f" ({words.names(clients)})" if len(clients) < len(ledgers) else ""
            phrases.append(f"{kind.name}{some} {_number(count)}")
    if phrases and len(ledgers) > 1:
        written.append(f"A joint run needs room at every client: {', '.join(phrases)}.")
    return written


def _table(counts: dict[str, int]) -> list[str]:
    width = max(map(len, counts))
    return [f"  {name:<{width}}  {_number(count)}" for name, count in counts.items()]


def _number(count: int) -> str:
    return f"{count} or more" if count == MOST else str(count)
