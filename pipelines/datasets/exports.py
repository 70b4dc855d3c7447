"""Reading what the clients handed out: their synthetic sets and the privacy on their cards."""

from pipelines import paths
from pipelines.datasets.containers import Images, load
from pipelines.files import read_json


def images(dataset: str, clients: list[str], generator: str) -> dict[str, Images]:
    """Every roster client's synthetic set; folders of clients no longer on the roster are ignored."""
    return {client: load(paths.synthetic(dataset, client, generator) / "images.npz") for client in sorted(clients)}


def at_hand(dataset: str, clients: list[str], generator: str) -> dict[str, Images]:
    """The same of those whose set lies here: a server between machines has cards alone."""
    here = [client for client in clients if (paths.synthetic(dataset, client, generator) / "images.npz").exists()]
    return images(dataset, here, generator)


def card(dataset: str, client: str, generator: str) -> dict:
    return read_json(paths.synthetic(dataset, client, generator) / "card.json")


def releases(dataset: str, clients: list[str], generator: str) -> dict:
    """{client: the release its set was sampled from}, by the cards' public names: what the guard asks the ledgers."""
    return {client: card(dataset, client, generator)["release"] for client in sorted(clients)}


def privacy(dataset: str, clients: list[str], generator: str) -> dict:
    """{"epsilon_max": over the clients' cards, "guarantee": formal only if every card says so}."""
    statements = [card(dataset, client, generator)["privacy"] for client in sorted(clients)]
    formal = all(statement["guarantee"] == "formal" for statement in statements)
    return {
        "epsilon_max": max(float(statement["epsilon"]) for statement in statements),
        "guarantee": "formal" if formal else "none",
    }
