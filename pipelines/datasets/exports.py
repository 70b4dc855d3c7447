"""Reading what the clients handed out: their synthetic sets and the privacy on their cards."""

from pipelines import paths
from pipelines.config.data import Profile
from pipelines.datasets.labelled_images import Images, load
from pipelines.files import read_json, require
from pipelines.privacy.statement import combined


def images(
    dataset: str, clients: list[str], generator: str, profile: Profile | None = None
) -> dict[str, Images]:
    """Every roster client's synthetic set; folders of clients no longer on the roster are ignored.

    Raises:
        UserError: a set is missing or damaged, or does not fit `profile` where it is given.
    """
    folders = {client: paths.synthetic(dataset, client, generator) for client in sorted(clients)}
    return {client: load(folder / "images.npz", profile) for client, folder in folders.items()}


def at_hand(dataset: str, clients: list[str], generator: str) -> dict[str, Images]:
    """The same of those whose set lies here: a server between machines has cards alone."""
    here = [
        client
        for client in clients
        if (paths.synthetic(dataset, client, generator) / "images.npz").exists()
    ]
    return images(dataset, here, generator)


def card(dataset: str, client: str, generator: str) -> dict:
    """card.json of one set.

    Raises:
        UserError: it is missing or damaged, or says nothing of the set's privacy.
    """
    path = paths.synthetic(dataset, client, generator) / "card.json"
    content = read_json(path)
    require(path, content, "privacy")
    require(path, content["privacy"], "epsilon", "guarantee")
    return content


def releases(dataset: str, clients: list[str], generator: str) -> dict:
    """{client: the release its set was sampled from}, by the cards' public names: what the guard asks the ledgers."""
    found = {}
    for client in sorted(clients):
        content = card(dataset, client, generator)
        require(paths.synthetic(dataset, client, generator) / "card.json", content, "release")
        found[client] = content["release"]
    return found


def privacy(dataset: str, clients: list[str], generator: str) -> dict:
    """{"epsilon_max": over the clients' cards, "guarantee": formal only if every card says so}."""
    return combined([card(dataset, client, generator)["privacy"] for client in sorted(clients)])
