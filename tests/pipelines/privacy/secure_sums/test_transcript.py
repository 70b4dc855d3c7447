"""Tests what a server and its colluding clients see together: nothing but the sum.

From the messages of a round, and all that the colluding clients hold, everything is taken off a
masked vector that can be. The rest must be uniform in Z_2^64, on its low and its high words, but for
the sum of all of them. The control keeps the masks of one round in the next.
"""

import numpy as np
from scipy.stats import chisquare

from pipelines.privacy.secure_sums import masks, shamir
from pipelines.privacy.secure_sums.in_process import example, run
from pipelines.privacy.secure_sums.messages import Step
from pipelines.privacy.secure_sums.server import Server

LENGTH = 16_384
NAMES = [f"c{place}" for place in range(6)]
COLLUDING = 2
DROPPED = "c2"
# some thirty tests: a false alarm once in three hundred thousand runs
ALARM = 1e-7


def seen(round: int, vectors: dict[str, np.ndarray]) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """Returns what is left of each honest survivor's masked vector, and the released sum.

    The adversary has the server's messages, and the keys of c0 and c1.
    """
    terms, clients = example(vectors, round=round, colluding=COLLUDING, threshold=5)
    private = {}
    server = Server(terms)

    def record(sent):
        place = terms.roster.position(sent.client)
        if place < COLLUDING and sent.content.scalars["step"] == Step.MASKED:
            private[place] = clients[sent.client]._memory.mask_key

    # `total` uses what the server has, and nothing else
    total = run(server, clients, {Step.MASKED: [DROPPED]}, record)
    handed = server._taken[Step.UNMASK]
    left = {}
    for place, taken in server._taken[Step.MASKED].items():
        if place < COLLUDING:
            continue
        shares = {giver: arrays["shares"][place].tobytes() for giver, arrays in handed.items()}
        seed = shamir.joined(shares, threshold=terms.threshold)
        rest = taken["masked"] - masks.self_mask(seed, LENGTH, terms=terms.digest)
        # pair masks with the colluding clients, and with the one that dropped out
        known = dict(private)
        gone = terms.roster.position(DROPPED)
        shares = {giver: arrays["shares"][gone].tobytes() for giver, arrays in handed.items()}
        known[gone] = shamir.joined(shares, threshold=terms.threshold)
        public = server._announced.mask_keys[place].tobytes()
        for other, key in known.items():
            mask = masks.pair_mask(key, public, (other, place), LENGTH, terms=terms.digest)
            rest = rest - mask if other > place else rest + mask
        left[place] = rest
    return left, total


def is_uniform(values: np.ndarray) -> bool:
    """Returns whether the highest and the lowest byte of both words are uniform."""
    return all(pvalue > ALARM for pvalue in pvalues(values))


def pvalues(values: np.ndarray) -> list[float]:
    found = []
    for shift in (56, 32, 24, 0):
        bytes_of = (values >> np.uint64(shift)) & np.uint64(255)
        found.append(chisquare(np.bincount(bytes_of.astype(np.int64), minlength=256)).pvalue)
    return found


def small(round: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(round)
    return {name: rng.integers(-100, 100, LENGTH) for name in NAMES}


def test_what_server_and_colluding_clients_see_is_uniform_given_the_sum():
    vectors = small(0)
    left, total = seen(0, vectors)
    # c3, c4 and c5 are left
    assert sorted(left) == [3, 4, 5]
    for values in left.values():
        assert is_uniform(values)
    # any two of them together, too
    assert is_uniform(left[3] + left[4])
    assert is_uniform(left[3] - left[5])
    # and their sum is what the adversary may know: the total less its own vectors
    known = total - vectors["c0"] - vectors["c1"]
    assert (sum(left.values()).astype(np.int64) == known).all()


def of_a_client_said_to_have_dropped_out(vectors: dict[str, np.ndarray]) -> np.ndarray:
    """Returns what is left of a masked vector that came, and that the server says did not come.

    The honest clients hand out their shares of its mask key, so that all its pair masks are known.
    """
    terms, clients = example(vectors, colluding=COLLUDING, threshold=5)
    server = Server(terms)
    while server.step < Step.CONFIRM:
        server.take({name: clients[name].answer(server.request(name)) for name in server.asked})
    gone = terms.roster.position(DROPPED)
    kept = server._taken[Step.MASKED].pop(gone)["masked"]
    server.left = tuple(server._taken[Step.MASKED])
    total = run(server, clients)
    others = [name for name in NAMES if name != DROPPED]
    assert (total == np.sum([vectors[name] for name in others], axis=0)).all()
    handed = server._taken[Step.UNMASK]
    shares = {giver: arrays["shares"][gone].tobytes() for giver, arrays in handed.items()}
    key = shamir.joined(shares, threshold=terms.threshold)
    rest = np.zeros(LENGTH, np.uint64)
    publics = [(place, server._announced.mask_keys[place].tobytes()) for place in server.left]
    masks.add_pair_masks(rest, key, gone, publics, terms=terms.digest)
    return kept - rest


def test_a_server_that_says_a_client_dropped_out_does_not_see_its_vector():
    assert is_uniform(of_a_client_said_to_have_dropped_out(small(0)))


def test_without_a_self_mask_that_server_would_see_the_vector(monkeypatch):
    """The control: pair masks alone do not stop a server that lies."""
    monkeypatch.setattr(
        masks, "self_mask", lambda seed, length, *, terms: np.zeros(length, np.uint64)
    )
    vectors = small(0)
    rest = of_a_client_said_to_have_dropped_out(vectors)
    assert (rest.astype(np.int64) == vectors[DROPPED]).all()


def test_two_rounds_have_no_mask_in_common():
    first, _ = seen(0, small(0))
    second, _ = seen(1, small(1))
    for place in first:
        assert is_uniform(first[place] - second[place])


def test_reused_masks_are_found(monkeypatch):
    """The control: with the key of each pair's mask from one round in the next, vectors show."""
    monkeypatch.setattr(masks, "shared", lambda *keys, terms, purpose: b"k" * 32)
    first, _ = seen(0, small(0))
    second, _ = seen(1, small(1))
    for place in first:
        assert not is_uniform(first[place] - second[place])


def test_an_unmasked_vector_is_found():
    assert not is_uniform(small(0)["c0"].astype(np.uint64))
