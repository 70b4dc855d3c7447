"""Says who takes part in a sum, and checks what each of them signed.

A roster maps each client's name to its Ed25519 key for signatures. The clients agree on it before
the first round, by a way that the server does not control. Otherwise the server could name clients
that do not exist, and nothing below would help.

>>> identities = {name: Identity.fresh() for name in ("c0", "c1", "c2")}
>>> roster = Roster({name: identity.public for name, identity in identities.items()})
>>> roster.names, roster.position("c1")
(('c0', 'c1', 'c2'), 1)
>>> signature = identities["c1"].sign(b"text")
>>> roster.has_signed("c1", b"text", signature), roster.has_signed("c0", b"text", signature)
(True, False)
"""

from collections.abc import Mapping
from functools import cached_property

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from pipelines.privacy.secure_sums.encoding import digest
from pipelines.privacy.secure_sums.refusals import Refusal

# bytes of a public key
KEY = 32
# bytes of a signature
SIGNATURE = 64


class Identity:
    """Holds a client's lasting key for signatures. Its text shows the public part alone.

    Args:
        private: The private key, 32 bytes.
    """

    def __init__(self, private: bytes):
        self._key = Ed25519PrivateKey.from_private_bytes(private)

    @classmethod
    def fresh(cls) -> "Identity":
        """Returns a new identity, from the operating system's entropy."""
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @cached_property
    def public(self) -> bytes:
        """Returns the public key, 32 bytes."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, content: bytes) -> bytes:
        """Returns the signature of the content, 64 bytes."""
        return self._key.sign(content)

    def __repr__(self) -> str:
        return f"Identity(public={self.public.hex()})"


class Roster:
    """Lists the clients of a federation. Their order is that of their names.

    Args:
        keys: The public key of each client, 32 bytes, by name.

    Raises:
        Refusal: Two clients have one key, or a key is none.
    """

    def __init__(self, keys: Mapping[str, bytes]):
        self.names = tuple(sorted(keys))
        self.keys = tuple(keys[name] for name in self.names)
        if len(set(self.keys)) < len(self.keys):
            raise Refusal("The roster names one key for two clients: each needs a key of its own.")
        self._verifiers = tuple(map(_verifier, self.names, self.keys))
        self._positions = {name: position for position, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def digest(self) -> bytes:
        """Returns a hash of all names and keys, 32 bytes."""
        fields = []
        for name, key in zip(self.names, self.keys):
            fields += [name, key]
        return digest("roster", *fields)

    def position(self, name: str) -> int:
        """Returns the place of a client in the roster, from 0 on.

        Raises:
            Refusal: The roster does not name this client.
        """
        if name not in self._positions:
            raise Refusal(f"{name!r} is not on the roster: agree on a roster that names it.")
        return self._positions[name]

    def has_signed(self, name: str, content: bytes, signature: bytes) -> bool:
        """Returns whether a client signed this content.

        Args:
            name: The client's.
            content: What it would have signed.
            signature: What came in its name.
        """
        try:
            self._verifiers[self.position(name)].verify(signature, content)
        except InvalidSignature:
            return False
        return True


def _verifier(name: str, key: bytes) -> Ed25519PublicKey:
    """Returns the key that checks a client's signatures."""
    try:
        return Ed25519PublicKey.from_public_bytes(key)
    except ValueError:
        raise Refusal(f"The roster's key of {name!r} must be {KEY} bytes of Ed25519.") from None
