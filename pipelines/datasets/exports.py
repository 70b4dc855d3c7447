"""Reads what the clients handed out: their synthetic sets and the privacy on their cards."""

from pipelines import paths
from pipelines.config.data import Profile
from pipelines.datasets.labelled_images import Images, load
from pipelines.files import read_json, require
from pipelines.privacy.statement import combined


def images(
    dataset: str, clients: list[str], generator: str, profile: Profile | None = None
) -> dict[str, Images]:
    """Reads the synthetic sets of the given clients; folders of others are ignored.

    Args:
        dataset: The data set's name.
        clients: The clients' names.
        generator: The generator's name.
        profile: What the images must fit, or None.

    Returns:
        The sets by client, in the order of names.

    Raises:
        UserError: A set is missing or damaged, or does not fit the profile.
    """
    sets = {}
    for client in sorted(clients):
        folder = paths.synthetic(dataset, client, generator)
        sets[client] = load(folder / "images.npz", profile)
    return sets


def at_hand(dataset: str, clients: list[str], generator: str) -> dict[str, Images]:
    """Reads the synthetic sets that lie here: a server between machines has cards alone.

    Args:
        dataset: The data set's name.
        clients: The clients' names.
        generator: The generator's name.
    """
    present = []
    for client in clients:
        if (paths.synthetic(dataset, client, generator) / "images.npz").exists():
            present.append(client)
    return images(dataset, present, generator)


def card(dataset: str, client: str, generator: str) -> dict:
    """Reads card.json of one set.

    Args:
        dataset: The data set's name.
        client: The client's name.
        generator: The generator's name.

    Raises:
        UserError: It is missing or damaged, or says nothing of the set's privacy.
    """
    path = paths.synthetic(dataset, client, generator) / "card.json"
    content = read_json(path)
    require(path, content, "privacy")
    require(path, content["privacy"], "epsilon", "guarantee")
    return content


def releases(dataset: str, clients: list[str], generator: str) -> dict:
    """Returns, by client, the public name of the release that its set was sampled from.

    The cards say it, and the guard asks the ledgers for it.

    Args:
        dataset: The data set's name.
        clients: The clients' names.
        generator: The generator's name.

    Raises:
        UserError: As `card`, or a card names no release.
    """
    names = {}
    for client in sorted(clients):
        content = card(dataset, client, generator)
        require(paths.synthetic(dataset, client, generator) / "card.json", content, "release")
        names[client] = content["release"]
    return names


def privacy(dataset: str, clients: list[str], generator: str) -> dict:
    """Returns `epsilon_max` over the cards, and `guarantee`: formal only if every card says so.

    Args:
        dataset: The data set's name.
        clients: The clients' names.
        generator: The generator's name.
    """
    return combined([card(dataset, client, generator)["privacy"] for client in sorted(clients)])
