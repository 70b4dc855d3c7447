"""Hides private files and folders from who reads DVC's notes: with secret bytes and padding.

A secret per client and data set lies with its ledger outside DVC, so that re-runs find it again.
"""

import fcntl
import hmac
import os
import secrets
from pathlib import Path

from pipelines import paths

SALT = "salt"
SALT_BYTES = 32
# stands in the file itself, after the secret: `head -c 450 salt` shows it
WHY_SALT = b"""
FedLens wrote this file: 32 secret bytes, this text, and zeros up to a power of two. DVC notes a hash and the size of
this folder in dvc.lock. Without this file they would confirm a guess of the records and tell how many there are.
It is private, like the rest of this folder. Leave it here.
"""
# small folders all look alike
LEAST_BYTES = 1 << 16
PADDING = ".padding"
LEAST_FILES = 64
# the name of one of the empty files
WHY_PADDING = "empty-files-which-hide-from-dvc.lock-how-many-images-lie-here"


def add_salt_file(folder: Path, dataset: str, owner: str, least: int = LEAST_BYTES) -> None:
    """Adds a file `salt` to a private folder, which brings the folder to a power of two bytes.

    The file begins with secret bytes. What DVC notes of a folder, in `dvc.lock` and in the run
    cache, is a hash and a size. Most private folders follow from the records and a public seed:
    without this, whoever knows all records but one could test that one.

    Args:
        folder: The folder, complete but for this file.
        dataset: The data set's name.
        owner: The client's name, or who else owns the folder.
        least: The least size of the folder in bytes.
    """
    held = 0
    for file in folder.rglob("*"):
        if file.is_file() and file.name != SALT:
            held += file.stat().st_size
    total = max(least, 1 << (held + SALT_BYTES - 1).bit_length())
    # the folder's own name is not settled while it is in the making
    secret = salt(dataset, owner, "folders")
    with (folder / SALT).open("wb") as file:
        file.write(secret + WHY_SALT)
        # cuts the text where there is little room, never the secret;
        # else adds zeros that take no room on the disk
        file.truncate(total - held)


def is_seasoned_elsewhere(folder: Path, dataset: str, owner: str) -> bool:
    """Returns True if the folder's `salt` follows from the secret of another ledgers folder.

    Args:
        folder: A private folder.
        dataset: The data set's name.
        owner: The client's name, or who else owns the folder.
    """
    salt_file = folder / SALT
    if not salt_file.is_file():
        return False
    with salt_file.open("rb") as file:
        return file.read(SALT_BYTES) != salt(dataset, owner, "folders")


def pad_file_count(folder: Path) -> None:
    """Fills `.padding` in a private folder, so that the folder holds a power of two of files.

    The added files are empty. DVC notes the number of a folder's files, too. Where every image is a
    file that is the number of records, and whoever knows all records but one could see if that one
    is there.
    """
    padding = folder / PADDING
    padding.mkdir(exist_ok=True)
    held = sum(file.is_file() for file in folder.rglob("*") if file.parent != padding)
    missing = max(LEAST_FILES, 1 << (held - 1).bit_length()) - held
    wanted = set(map(str, range(1, missing)))
    if missing:
        wanted.add(WHY_PADDING)
    present = {file.name for file in padding.iterdir()}
    for name in wanted - present:
        (padding / name).touch()
    for name in present - wanted:
        (padding / name).unlink()


def salt(dataset: str, owner: str, part: str) -> bytes:
    """Returns 32 bytes for one private file: a keyed hash of its name under the owner's secret.

    The secret is drawn once and never again.

    Args:
        dataset: The data set's name.
        owner: The client's name, or who else owns the file.
        part: The file's name.

    >>> salt("digits", "c0", "train") == salt("digits", "c0", "train")
    True
    >>> salt("digits", "c0", "train") == salt("digits", "c0", "test")
    False
    """
    path = paths.ledgers() / dataset / f"{owner}.secret"
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        secret = file.read()
        # it is new, or its writer was killed: an empty key would be no secret
        if len(secret) < SALT_BYTES:
            secret = secrets.token_bytes(SALT_BYTES)
            file.seek(0)
            file.write(secret)
    return hmac.digest(secret, part.encode(), "sha256")
