"""Says which site owns each record, and which client holds each site.

A folder of images names its owners in a table, `clients.csv`, with the columns `file` and `client`.
The scheme `natural` of a partition deals every record to the client that holds its site.

>>> sites = {"c0": ["a", "b"], "c1": ["c"]}
>>> settings = Partition.model_construct(clients=["c0", "c1"], sites=sites)
>>> by_client(np.array(["a", "c", "b", "c"]), settings)
[array([0, 2]), array([1, 3])]
"""

import csv
import io
from pathlib import Path, PurePosixPath

import numpy as np

from pipelines.config.data import Partition
from pipelines.config.values import mistake
from pipelines.datasets import raw_files
from pipelines.errors import UserError, printable

TABLE = "clients.csv"
COLUMNS = ("file", "client")
# of a site's name, as of a file's
MOST_CHARACTERS = 255


def from_table(folder: Path, files: list[str]) -> list[str] | None:
    """Returns the owner of each image file that `clients.csv` of a folder names.

    Args:
        folder: The folder of the data set.
        files: The paths of all image files, relative to the folder.

    Returns:
        The owners in the order of `files`, or None if the folder has no such table.

    Raises:
        UserError: The table cannot be read, names a file twice or one that is no image, or lacks
            an image.
    """
    path = folder / TABLE
    if not path.is_file():
        return None
    owners = _owners(path)
    unknown = sorted(set(owners) - set(files))
    if unknown:
        raise UserError(
            f"{printable(path)} must name images below {printable(folder)}. "
            f"Got {len(unknown)} that are none: {raw_files.some(unknown)}."
        )
    missing = [file for file in files if file not in owners]
    if missing:
        raise UserError(
            f"{printable(path)} must name the client of every image. "
            f"{len(missing)} of {len(files)} have none: {raw_files.some(missing)}."
        )
    return [owners[file] for file in files]


def _owners(path: Path) -> dict[str, str]:
    """Returns {file: its owner} as the table has it."""
    owners = {}
    twice = []
    for line, file, owner in _lines(path):
        if not file or not owner or len(owner) > MOST_CHARACTERS:
            raise UserError(
                f"Line {line} of {printable(path)} must name a file and its client, of 1 to "
                f"{MOST_CHARACTERS} characters. Got {file[:99]!r} and {owner[:99]!r} instead."
            )
        name = str(PurePosixPath(file))
        if name in owners:
            twice.append(name)
        owners[name] = owner
    if twice:
        raise UserError(
            f"{printable(path)} must name each file once. "
            f"Got {len(twice)} more than once: {raw_files.some(twice)}."
        )
    return owners


def _lines(path: Path) -> list[tuple[int, str, str]]:
    """Returns (number of the line, file, owner) of each line of the table but empty ones."""
    try:
        # a spreadsheet may write a mark before the first character
        text = path.read_text(encoding="utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        rows = [(reader.line_num, row) for row in reader if row]
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"{printable(path)} must be a text in UTF-8 with commas between its columns "
            f"({printable(reason)})."
        ) from None
    header = [cell.strip() for cell in rows[0][1]] if rows else []
    if any(header.count(column) != 1 for column in COLUMNS):
        shown = printable(", ".join(header)[:99])
        raise UserError(
            f"{printable(path)} must begin with a line that names the columns, 'file,client'. "
            f"Got '{shown}' instead."
        )
    positions = [header.index(column) for column in COLUMNS]
    lines = []
    for number, row in rows[1:]:
        if len(row) != len(header):
            raise UserError(
                f"Line {number} of {printable(path)} must have {len(header)} columns. "
                f"Got {len(row)} instead."
            )
        file, owner = (row[position].strip() for position in positions)
        lines.append((number, file, owner))
    return lines


def by_client(owners: np.ndarray | None, settings: Partition) -> list[np.ndarray]:
    """Returns the positions of each client's records, in the order of `partition.clients`.

    Args:
        owners: strings [n], the site of each record, or None.
        settings: `clients` and `sites` apply.

    Raises:
        UserError: The records name no owner, a site has no client, or a client has no record.
    """
    if owners is None:
        rule = (
            "dirichlet, shards, quantity or iid for records that name no owner (raw/README.md "
            "says how they name one)"
        )
        raise mistake("partition.scheme", "natural", rule)
    holders = _holders(settings)
    sites, numbers = np.unique(owners, return_inverse=True)
    _check_sites(sites.tolist(), holders, settings)
    holder_of_site = np.array([settings.clients.index(holders[site]) for site in sites.tolist()])
    holder = holder_of_site[numbers]
    return [np.flatnonzero(holder == position) for position in range(len(settings.clients))]


def absent_sites(owners: np.ndarray | None, settings: Partition) -> list[str]:
    """Returns the sites of `partition.sites` that own none of the records, sorted."""
    if owners is None or settings.sites is None:
        return []
    return sorted(set(_holders(settings)) - set(owners.tolist()))


def _holders(settings: Partition) -> dict[str, str]:
    """Returns {site: the client that holds it}."""
    if settings.sites is None:
        return {client: client for client in settings.clients}
    holders = {}
    for client, sites in settings.sites.items():
        holders |= dict.fromkeys(sites, client)
    return holders


def _check_sites(sites: list[str], holders: dict[str, str], settings: Partition) -> None:
    """Raises UserError if a site of the records has no client, or a client no site of them."""
    unclaimed = [site for site in sites if site not in holders]
    served = {holders[site] for site in sites if site in holders}
    idle = [client for client in settings.clients if client not in served]
    if not unclaimed and not idle:
        return
    all_sites = f"The records' sites are {raw_files.some(sites)}"
    if settings.sites is None:
        rule = (
            "a mapping of each client to its sites, unless the sites have the clients' names. "
            f"{all_sites}; the clients are {raw_files.some(settings.clients)}"
        )
    elif unclaimed:
        rule = f"a mapping that gives every site a client. {all_sites}; without a client are "
        rule += raw_files.some(unclaimed)
    else:
        rule = (
            f"a mapping that gives every client a site with records. {all_sites}; without one are "
        )
        rule += raw_files.some(idle)
    raise mistake("partition.sites", settings.sites, rule)
