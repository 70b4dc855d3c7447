"""Writes lists of names, and equal sentences of many clients, in few words."""

from collections.abc import Mapping, Sequence

# Longer lists of names are cut, so that fifty clients are a line, too.
MOST_NAMES = 5


def names(listed: Sequence[str]) -> str:
    """Returns names as text, of a long list the first.

    >>> names(["a", "b"]), names(list("abcdefgh"))
    ('a and b', 'a, b, c, d, e and 3 others')
    """
    shown = list(listed[:MOST_NAMES])
    if len(listed) > MOST_NAMES:
        return f"{', '.join(shown)} and {len(listed) - MOST_NAMES} others"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def by_client(texts: Mapping[str, str]) -> list[str]:
    """Returns what is said of each client, equal texts once.

    Args:
        texts: {client: what is said of it}.

    >>> by_client({"a": "60 steps", "b": "30 steps", "c": "60 steps"})
    ['a and c: 60 steps', 'b: 30 steps']
    """
    clients = {}
    for client, text in texts.items():
        clients.setdefault(text, []).append(client)
    return [f"{names(those)}: {text}" for text, those in clients.items()]
