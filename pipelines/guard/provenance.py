"""Holds what `dvc push` would upload against the ledgers: made of which releases, at which price.

This runs where the ledgers lie. Elsewhere it can vouch for no card, and says so.
"""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipelines import config, releases
from pipelines.errors import UserError
from pipelines.files import read_json, standard
from pipelines.guard.uploads import Upload
from pipelines.privacy.statement import combined
from pipelines.seal import roster_of, signed_by

CARDS = ("card.json", "privacy.json")


def cards(outputs: Iterable[Upload]) -> Iterator[tuple[str, dict | None]]:
    """Yields the path and the card of every output that would be uploaded (`uploads.cached`).

    The card is the output's card.json or privacy.json, read from DVC's cache by dvc.lock, or None
    where the output has no such file.
    """
    for upload in outputs:
        blobs = [upload.files[name] for name in CARDS if name in upload.files]
        yield upload.path, read_json(blobs[0]) if blobs else None


def problems(root: Path, outputs: Iterable[Upload]) -> list[str]:
    """Returns a sentence per folder whose card no ledger bears out.

    Args:
        root: The checkout.
        outputs: What DVC would upload of it.
    """
    sentences = []
    with contextlib.chdir(root):
        try:
            params = config.load()
            for path, card in cards(outputs):
                sentences += _held_against_the_ledgers(params, path, card)
        except UserError as error:
            return [str(error)]
    return sentences


def _held_against_the_ledgers(params: config.Params, path: str, card: dict | None) -> Iterator[str]:
    """Yields what is wrong with the card of one output.

    An export states its one release in full, which every client that made it has in its ledger, as
    far as that ledger lies here. Where it does not, the clients' signatures bear the card out. An
    initial model states one release per client, and their largest price.
    """
    # 1. the releases that the card names, by client
    is_export = card is not None and "privacy" in card
    named = (card or {}).get("releases")
    if is_export:
        client = Path(path).parts[3]
        named = {client: None} | card.get("together", {}) | {client: card.get("release")}
    if not named:
        yield (
            f"{path} names no release of any ledger, and `dvc push` would upload it. Run "
            "`dvc repro`."
        )
        return
    # 2. their entries in the ledgers
    dataset = Path(path).parts[2]
    # these clients' ledgers lie on other machines
    elsewhere = params.federation.roster if params.federation.is_remote else {}
    entries = {}
    for client, name in named.items():
        known = client in params.clients
        is_partner = is_export and client != Path(path).parts[3]
        if is_partner and not known and client in elsewhere:
            continue
        made = releases.closed_by_public_name(params, dataset, client) if known else {}
        entries[client] = made.get(name)
    unknown = [client for client, entry in entries.items() if entry is None]
    for client in unknown:
        yield (
            f"{path} names a release that is not entered as made in the ledger of {client}. Run "
            "this where that ledger lies, or make the folder again: `dvc repro --force`."
        )
    if unknown:
        return
    # 3. their statements
    statements = [entry["statement"] for entry in entries.values()]
    if is_export:
        details = card["privacy"].get("details", {})
        members = details.get("clients", 1)
        fewest = members - details.get("may_drop", 0)
        agrees = fewest <= len(named) <= members and all(
            standard(statement) == card["privacy"] for statement in statements
        )
    else:
        owed = standard(combined(statements))
        agrees = {key: card.get(key) for key in owed} == owed
    if not agrees:
        yield (
            f"{path} states another privacy than the ledger of {', '.join(entries)}. Run "
            "`dvc repro --force`."
        )
        return
    # 4. what the others have signed
    if len(entries) < len(named):
        yield from _unsigned(params, path, card, fewest)


def _unsigned(params: config.Params, path: str, card: dict, fewest: int) -> Iterator[str]:
    """Yields why a card of a release between machines does not have its clients' signatures.

    Args:
        params: The parameters, whose roster has the clients' keys.
        path: The export.
        card: Its card.
        fewest: How many must have signed.
    """
    try:
        signers = signed_by(card, roster_of(params))
    except UserError as error:
        yield f"{path}: {error}"
        return
    if len(signers) < fewest:
        yield (
            f"{path} states a release that {fewest} clients must have signed, and its card has the "
            f"signatures of {len(signers)} ({', '.join(signers) or 'nobody'}). Make it again: "
            "`dvc repro --force`."
        )
