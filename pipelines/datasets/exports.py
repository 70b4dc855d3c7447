"""Reads what the clients handed out: their synthetic sets and the privacy on their cards."""

from pathlib import Path
from typing import NamedTuple

from pipelines import paths
from pipelines.config.data import Profile
from pipelines.datasets.labelled_images import Images, load
from pipelines.files import read_json, require, write_json
from pipelines.privacy.statement import combined, not_covered


class Export(NamedTuple):
    """Holds what a client handed out: its synthetic set and the card."""

    images: Images
    card: dict


def save(folder: Path, export: Export) -> None:
    """Writes a set and its card into a new folder."""
    folder.mkdir(parents=True)
    export.images.save(folder / "images.npz")
    write_json(folder / "card.json", export.card)


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


def handed_out(
    dataset: str, clients: list[str], generator: str, profile: Profile
) -> dict[str, Export]:
    """Reads the sets and cards of the given clients.

    Args:
        dataset: The data set's name.
        clients: The clients' names.
        generator: The generator's name.
        profile: What the images must fit.

    Raises:
        UserError: As `images` and `card`.
    """
    exports = {}
    for client, data in images(dataset, clients, generator, profile).items():
        exports[client] = Export(data, card(dataset, client, generator))
    return exports


def read(folder: Path, profile: Profile) -> Export:
    """Reads what `save` wrote, from another member's folder.

    Args:
        folder: The folder of one client.
        profile: What the images must fit.

    Raises:
        UserError: A file is missing or damaged, or does not fit.
    """
    return Export(load(folder / "images.npz", profile), _card(folder / "card.json"))


def card(dataset: str, client: str, generator: str) -> dict:
    """Reads card.json of one set.

    Args:
        dataset: The data set's name.
        client: The client's name.
        generator: The generator's name.

    Raises:
        UserError: It is missing or damaged, or says nothing of the set's privacy.
    """
    return _card(paths.synthetic(dataset, client, generator) / "card.json")


def _card(path: Path) -> dict:
    content = read_json(path)
    require(path, content, "privacy", "release")
    require(path, content["privacy"], "epsilon", "guarantee")
    return content


def cards(dataset: str, clients: list[str], generator: str) -> dict[str, dict]:
    """Reads {client: its card}.

    Args:
        dataset: The data set's name.
        clients: The clients' names.
        generator: The generator's name.

    Raises:
        UserError: As `card`.
    """
    return {client: card(dataset, client, generator) for client in sorted(clients)}


def privacy_of(cards: dict[str, dict], classifier: str) -> dict:
    """Returns what an initial model states of its privacy.

    It is "epsilon_max" and "guarantee" over all cards, "not_covered", and "releases": by client, the
    public name of the release that its set was sampled from. The guard asks the ledgers for it.

    Args:
        cards: {client: its card}.
        classifier: The model's network.
    """
    statements = [cards[client]["privacy"] for client in sorted(cards)]
    releases = {client: cards[client]["release"] for client in sorted(cards)}
    return {
        **combined(statements),
        "not_covered": not_covered(statements, classifier),
        "releases": releases,
    }


def privacy(dataset: str, clients: list[str], generator: str) -> dict:
    """Returns `epsilon_max` over the cards, and `guarantee`: formal only if every card says so.

    Args:
        dataset: The data set's name.
        clients: The clients' names.
        generator: The generator's name.
    """
    statements = cards(dataset, clients, generator).values()
    return combined([statement["privacy"] for statement in statements])
