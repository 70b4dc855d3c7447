"""Keeps a client's lasting key for signatures in a file, which is made where there is none.

The file lies beside the client's ledgers and is as private. Whoever has it can sign in the client's
name, so that a server could put somebody else in its place.
"""

import os
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from pipelines.privacy import ledger_folder
from pipelines.privacy.ledger import durable
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Identity


def path_of(client: str) -> Path:
    """Returns the file of a client's key."""
    return ledger_folder.chosen() / "signing_keys" / f"{client}.key"


def made(client: str) -> Identity:
    """Returns a client's identity. Its file is made where there is none, for this user alone.

    Raises:
        Refusal: The file holds no such key.
        OSError: The file cannot be written.
    """
    path = path_of(client)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = Ed25519PrivateKey.generate()
        content = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        beside = path.with_suffix(".tmp")
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        durable.flush_folder(path.parent)
    return read(client)


def read(client: str) -> Identity:
    """Returns a client's identity, from its file.

    Raises:
        Refusal: There is no such file, or it holds no such key.
    """
    path = path_of(client)
    if not path.exists():
        raise Refusal(
            f"{path} is missing: `python -m pipelines.privacy.secure_sums {client}` makes it."
        )
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise Refusal(f"{path} holds no private key of Ed25519: bring it back from a copy.")
    return Identity(key.private_bytes_raw())
