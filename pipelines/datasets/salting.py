"""A secret per client and data set, kept with its ledger outside DVC, so that re-runs find it again."""

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
LEAST_BYTES = 1 << 16  # small folders all look alike
PADDING = ".padding"
LEAST_FILES = 64
WHY_PADDING = (
    "empty-files-which-hide-from-dvc.lock-how-many-images-lie-here"  # the name of one of them
)


def add_salt_file(folder: Path, dataset: str, owner: str, least: int = LEAST_BYTES) -> None:
    """Adds a file `salt` to a private folder, of secret bytes, that brings the folder to a power of two bytes.

    What DVC notes of a folder, in `dvc.lock` and in the run cache, is a hash and a size. Most private folders follow
    from the records and a public seed: without this, whoever knows all records but one could test that one.
    """
    held = sum(
        file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.name != SALT
    )
    total = max(least, 1 << (held + SALT_BYTES - 1).bit_length())
    secret = salt(
        dataset, owner, "folders"
    )  # the folder's own name is not settled while it is in the making
    with (folder / SALT).open("wb") as file:
        file.write(secret + WHY_SALT)
        # cuts the text where there is little room, never the secret; else adds zeros that take no room on the disk
        file.truncate(total - held)


def is_seasoned_elsewhere(folder: Path, dataset: str, owner: str) -> bool:
    """Returns whether the folder's `salt` follows from the secret of another ledgers folder, with which it was used."""
    found = folder / SALT
    if not found.is_file():
        return False
    with found.open("rb") as file:
        return file.read(SALT_BYTES) != salt(dataset, owner, "folders")


def pad_file_count(folder: Path) -> None:
    """Fills `.padding` in a private folder with empty files, so that the folder holds a power of two of them.

    DVC notes the number of a folder's files, too. Where every image is a file that is the number of records, and
    whoever knows all records but one could see whether that one is there.
    """
    padding = folder / PADDING
    padding.mkdir(exist_ok=True)
    held = sum(file.is_file() for file in folder.rglob("*") if file.parent != padding)
    missing = max(LEAST_FILES, 1 << (held - 1).bit_length()) - held
    wanted = {str(number) if number else WHY_PADDING for number in range(missing)}
    there = {file.name for file in padding.iterdir()}
    for name in wanted - there:
        (padding / name).touch()
    for name in there - wanted:
        (padding / name).unlink()


def salt(dataset: str, owner: str, part: str) -> bytes:
    """32 bytes for one private file: a keyed hash of its name under the owner's secret, drawn once and never again."""
    path = paths.ledgers() / dataset / f"{owner}.secret"
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        secret = file.read()
        if (
            len(secret) < SALT_BYTES
        ):  # new, or its writer was killed: an empty key would be no secret
            secret = secrets.token_bytes(SALT_BYTES)
            file.seek(0)
            file.write(secret)
    return hmac.digest(secret, part.encode(), "sha256")
