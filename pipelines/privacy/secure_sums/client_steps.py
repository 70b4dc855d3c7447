"""Answers the five steps of a round at a client, as functions of its memory and the request.

Each function checks all that the server says before anything private is touched. What holds after a
round, for each other client v that is honest, is:

* one set of survivors was signed, and shares were handed out for that set alone;
* of v, either the share of the seed was handed out (v survived) or that of the mask key (v did
  not), never both;
* nothing was handed out before `threshold` clients had signed the same set and the same view.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pipelines.privacy.secure_sums import announced as announcements
from pipelines.privacy.secure_sums import keys, masks, shamir
from pipelines.privacy.secure_sums.announced import survivors_content, view_of
from pipelines.privacy.secure_sums.memory import Memory
from pipelines.privacy.secure_sums.messages import Message, Places, Step, array_of, places_of, rows
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import SIGNATURE, Identity
from pipelines.privacy.secure_sums.sealed_shares import SEALED, seal, unseal
from pipelines.privacy.secure_sums.shamir import SHARE
from pipelines.privacy.secure_sums.terms import Terms


@dataclass(frozen=True, repr=False)
class Member:
    """Holds what a client is in a round.

    Attributes:
        name: Its name in the roster.
        identity: Its key for signatures.
        terms: The terms that it agreed to.
        vector: Draws its noisy vector, int64 [length]. It is called after the release was claimed.
    """

    name: str
    identity: Identity
    terms: Terms
    vector: Callable[[], np.ndarray]

    @property
    def place(self) -> int:
        """Returns its place in the roster."""
        return self.terms.roster.position(self.name)


Answer = tuple[dict[str, np.ndarray], Memory]


def announce(member: Member, memory: Memory, request: Message) -> Answer:
    """Draws the keys and the seed of a round, and signs what others may see of them.

    Args:
        member: The client.
        memory: What it did in this round.
        request: The server's message.
    """
    terms = member.terms
    channel_key = keys.fresh()
    mask_key = keys.fresh()
    # another 32 bytes of the operating system's entropy
    seed = keys.fresh()
    channel_public = keys.public_of(channel_key)
    mask_public = keys.public_of(mask_key)
    commitment = masks.commitment(seed, terms=terms.digest)
    content = announcements.keys_content(
        terms, member.name, channel_public, mask_public, commitment
    )
    answer = {
        "channel_key": channel_public,
        "mask_key": mask_public,
        "commitment": commitment,
        "signature": member.identity.sign(content),
    }
    arrays = {name: np.frombuffer(value, np.uint8) for name, value in answer.items()}
    return arrays, replace(memory, channel_key=channel_key, mask_key=mask_key, seed=seed)


def share(member: Member, memory: Memory, request: Message) -> Answer:
    """Cuts mask key and seed into shares, one of each for every client that announced keys.

    Args:
        member: The client.
        memory: What it did in this round.
        request: The server's message.

    Raises:
        Refusal: The keys do not pass (announced.py), or one's own are missing or changed.
    """
    terms = member.terms
    announced = announcements.checked(request, terms)
    own = member.place
    expected = keys.public_of(memory.mask_key)
    if own not in announced.places or announced.mask_keys[own].tobytes() != expected:
        raise Refusal("The server forwards other keys for this client than it announced.")
    count = {"threshold": terms.threshold, "count": terms.clients}
    key_shares = shamir.split(memory.mask_key, **count)
    seed_shares = shamir.split(memory.seed, **count)
    sealed = {}
    for place in announced.places.tolist():
        if place != own:
            sealed[place] = seal(
                key_shares[place] + seed_shares[place],
                private=memory.channel_key,
                public=announced.channel_keys[place].tobytes(),
                sender=member.name,
                receiver=terms.roster.names[place],
                terms=terms.digest,
            )
    kept = rows(terms.clients, 2 * SHARE, {own: key_shares[own] + seed_shares[own]})
    arrays = {"sealed": rows(terms.clients, SEALED, sealed)}
    return arrays, replace(memory, announced=announced, shares=kept)


def mask(
    member: Member, memory: Memory, request: Message, claim: Callable[[Terms], None]
) -> Answer:
    """Opens the others' shares, then draws the vector and masks it (masks.py).

    Args:
        member: The client.
        memory: What it did in this round.
        request: The server's message.
        claim: Claims the release for this round, before the vector is drawn.

    Raises:
        Refusal: Too few clients are left, shares do not open, the release was masked before, or
            the vector has another shape or kind.
    """
    terms = member.terms
    own = member.place
    announced_places = tuple(memory.announced.places.tolist())
    sharers = places_of(request, terms, within=announced_places, least=terms.threshold)
    _require_own(own, sharers)
    shares = _unsealed(member, memory, request, sharers)
    claim(terms)
    masked = _checked_vector(member.vector(), terms).astype(np.uint64)
    masked += masks.self_mask(memory.seed, terms.length, terms=terms.digest)
    others = []
    for place in sharers:
        if place != own:
            others.append((place, memory.announced.mask_keys[place].tobytes()))
    masks.add_pair_masks(masked, memory.mask_key, own, others, terms=terms.digest)
    return {"masked": masked}, replace(memory, sharers=sharers, shares=shares)


def confirm(member: Member, memory: Memory, request: Message) -> Answer:
    """Signs the set of survivors, with all that was seen before. It signs no other set after it.

    Args:
        member: The client.
        memory: What it did in this round.
        request: The server's message.

    Raises:
        Refusal: Too few are left, or the server leaves this client out although it answers.
    """
    terms = member.terms
    survivors = places_of(request, terms, within=memory.sharers, least=terms.threshold)
    _require_own(member.place, survivors)
    content = _confirmed_content(terms, memory, survivors)
    signature = np.frombuffer(member.identity.sign(content), np.uint8)
    return {"signature": signature}, replace(memory, survivors=survivors)


def unmask(member: Member, memory: Memory, request: Message) -> Answer:
    """Hands out one share of each client: of the seed if it survived, else of the mask key.

    Args:
        member: The client.
        memory: What it did in this round.
        request: The server's message.

    Raises:
        Refusal: Fewer than `threshold` survivors signed the set that this client signed.
    """
    terms = member.terms
    signers = places_of(request, terms, within=memory.survivors, least=terms.threshold)
    signatures = array_of(request, "signatures", (terms.clients, SIGNATURE), np.uint8)
    content = _confirmed_content(terms, memory, memory.survivors)
    for place in signers:
        name = terms.roster.names[place]
        if not terms.roster.has_signed(name, content, signatures[place].tobytes()):
            raise Refusal(
                f"{name!r} did not sign the set of survivors that this client signed: the server "
                "showed them different sets. No share is handed out."
            )
    shares = np.zeros((terms.clients, SHARE), np.uint8)
    for place in memory.sharers:
        key_share, seed_share = np.split(memory.shares[place], 2)
        shares[place] = seed_share if place in memory.survivors else key_share
    return {"shares": shares}, Memory(step=memory.step)


ANSWERS = {
    Step.KEYS: announce,
    Step.SHARES: share,
    Step.MASKED: mask,
    Step.CONFIRM: confirm,
    Step.UNMASK: unmask,
}


def _unsealed(member: Member, memory: Memory, request: Message, sharers: Places) -> np.ndarray:
    """Returns the shares that others have for this client, beside its own, uint8 [K, 66]."""
    terms = member.terms
    sealed = array_of(request, "sealed", (terms.clients, SEALED), np.uint8)
    shares = memory.shares.copy()
    for place in sharers:
        if place != member.place:
            opened = unseal(
                sealed[place].tobytes(),
                private=memory.channel_key,
                public=memory.announced.channel_keys[place].tobytes(),
                sender=terms.roster.names[place],
                receiver=member.name,
                terms=terms.digest,
            )
            shares[place] = np.frombuffer(opened, np.uint8)
    return shares


def _checked_vector(vector: np.ndarray, terms: Terms) -> np.ndarray:
    """Returns a vector of the terms' shape and kind.

    How large its entries are is not looked at. A refusal by a single vector would be seen, and
    would tell more of records than the noisy sum does. The server looks at the sum (terms.py).
    """
    if vector.dtype != np.int64 or vector.shape != (terms.length,):
        raise Refusal(f"A vector must be int64, ({terms.length},): mend what draws it.")
    return vector


def _confirmed_content(terms: Terms, memory: Memory, survivors: Places) -> bytes:
    """Returns what the survivors sign."""
    view = view_of(terms, memory.announced, memory.sharers)
    return survivors_content(terms, view, survivors)


def _require_own(own: int, places: Places) -> None:
    """Checks that the server counts this client among those who are left.

    Raises:
        Refusal: It does not.
    """
    if own not in places:
        raise Refusal("The server claims that this client dropped out, and yet asks it.")
