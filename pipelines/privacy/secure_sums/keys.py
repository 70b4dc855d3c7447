"""Makes the key pairs of a round, and derives from two of them what only their owners share.

Key agreement is X25519 (RFC 7748), derivation HKDF with SHA-256 (RFC 5869), both of the package
`cryptography`. Each client draws its pairs anew in each round. The terms' digest, the purpose and
both public keys enter the derivation. So keys of two rounds, purposes or pairs are independent.

>>> first, second = fresh(), fresh()
>>> here = shared(first, public_of(second), terms=b"round 1", purpose="masks")
>>> here == shared(second, public_of(first), terms=b"round 1", purpose="masks")
True
>>> here == shared(second, public_of(first), terms=b"round 2", purpose="masks")
False
"""

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from pipelines.privacy.secure_sums.encoding import encoded
from pipelines.privacy.secure_sums.refusals import Refusal

# bytes of each key, private, public or derived
KEY = 32


def fresh() -> bytes:
    """Returns a new private key, 32 bytes, from the operating system's entropy."""
    return X25519PrivateKey.generate().private_bytes_raw()


def public_of(private: bytes) -> bytes:
    """Returns the public key of a private one, 32 bytes."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def gives_secret(public: bytes) -> bool:
    """Returns whether a public key agrees on a secret: it is none of the few that give zeros."""
    try:
        shared(fresh(), public, terms=b"", purpose="check")
    except Refusal:
        return False
    return True


def shared(
    private: bytes, public: bytes, *context: bytes | int, terms: bytes, purpose: str
) -> bytes:
    """Returns a key that the owners of two pairs share, 32 bytes. It is the same at both.

    Args:
        private: One's own private key.
        public: The other's public key.
        *context: What else enters, such as the direction of a message or both places.
        terms: The digest of the round's terms.
        purpose: What the key is for. Two purposes have independent keys.

    Raises:
        Refusal: The other's key is one of the few that give no secret.
    """
    try:
        secret = X25519PrivateKey.from_private_bytes(private).exchange(
            X25519PublicKey.from_public_bytes(public)
        )
    except ValueError:
        raise Refusal("A client's public key gives no shared secret: it is a forged one.") from None
    pair = sorted([public_of(private), public])
    return derived(secret, *pair, *context, terms=terms, purpose=purpose)


def derived(secret: bytes, *context: bytes | int, terms: bytes, purpose: str) -> bytes:
    """Returns a key that follows from a secret, 32 bytes.

    Args:
        secret: What is derived from, of full entropy or from a key agreement.
        *context: What else enters, such as public keys.
        terms: The digest of the round's terms.
        purpose: What the key is for.
    """
    info = encoded(purpose, *context)
    return HKDF(algorithm=hashes.SHA256(), length=KEY, salt=terms, info=info).derive(secret)
