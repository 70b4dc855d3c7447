"""What `dvc push` would upload, held against the ledgers: made of which releases, at which price.

Part of `python -m pipelines.guard`. It runs where the ledgers lie: elsewhere it can vouch for no card, and says so.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pipelines import config, releases, uploads
from pipelines.errors import UserError
from pipelines.files import read_json, standard
from pipelines.privacy.statement import combined

CARDS = ("card.json", "privacy.json")


def cards(root: Path) -> Iterator[tuple[str, dict | None]]:
    """(path, its card.json or privacy.json) of every output that would be uploaded: from DVC's cache, by dvc.lock.

    None where it has no such file. An output that the cache does not hold cannot be uploaded, and is left out.
    """
    for upload in uploads.cached(root):
        blobs = [upload.files[name] for name in CARDS if name in upload.files]
        yield upload.path, next((read_json(blob) for blob in blobs), None)


def problems(root: Path) -> list[str]:
    """One sentence per folder whose card no ledger bears out."""
    with contextlib.chdir(root):
        try:
            params = config.load()
            return [
                line
                for path, card in cards(Path())
                for line in _held_against_the_ledgers(params, path, card)
            ]
        except UserError as error:
            return [str(error)]


def _held_against_the_ledgers(params: config.Params, path: str, card: dict | None) -> Iterator[str]:
    """An export states its one release in full; an initial model one per client, and their largest price."""
    export = card is not None and "privacy" in card
    named = {Path(path).parts[3]: card.get("release")} if export else (card or {}).get("releases")
    if not named:
        yield f"{path} names no release of any ledger, and `dvc push` would upload it. Run `dvc repro`."
        return
    dataset = Path(path).parts[2]
    made = {
        client: releases.made(params, dataset, client)
        for client in named
        if client in params.clients
    }
    entered = {client: made.get(client, {}).get(name) for client, name in named.items()}
    for client in (unknown := [client for client, entry in entered.items() if entry is None]):
        yield (
            f"{path} names a release that is not entered as made in the ledger of {client}. Run this where that ledger "
            "lies, or make the folder again: `dvc repro --force`."
        )
    if not unknown and _stated(card, export) != _owed(
        [entry["statement"] for entry in entered.values()], export
    ):
        yield f"{path} states another privacy than the ledger of {', '.join(entered)}. Run `dvc repro --force`."


def _stated(card: dict, export: bool) -> dict:
    return (
        card["privacy"] if export else {key: card.get(key) for key in ("epsilon_max", "guarantee")}
    )


def _owed(statements: list[dict], export: bool) -> dict:
    if export:
        return standard(statements[0])
    return standard(combined(statements))
