"""Tests a client against a server that lies: it answers once, in order, and opens no vector."""

from dataclasses import replace

import numpy as np
import pytest

from pipelines.privacy.secure_sums import keys
from pipelines.privacy.secure_sums.announced import keys_content
from pipelines.privacy.secure_sums.client import Client
from pipelines.privacy.secure_sums.in_process import example, run
from pipelines.privacy.secure_sums.journal import Volatile
from pipelines.privacy.secure_sums.messages import Message, Step
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Identity
from pipelines.privacy.secure_sums.server import Server

VECTORS = {"c0": [1, 1], "c1": [10, 10], "c2": [100, 100], "c3": [1000, 1000]}


def until(step: Step, **others) -> tuple[Server, dict[str, Client]]:
    """Returns a server that is about to ask a step, and its clients."""
    terms, clients = example(VECTORS, **others)
    server = Server(terms)
    while server.step < step:
        server.take({name: clients[name].answer(server.request(name)) for name in server.asked})
    return server, clients


def changed(request: Message, **arrays: np.ndarray) -> Message:
    return Message({**request.arrays, **arrays}, request.scalars)


@pytest.mark.parametrize("step", list(Step))
def test_the_same_request_gets_the_same_bytes(step):
    server, clients = until(step)
    request = server.request("c0")
    assert clients["c0"].answer(request).digest == clients["c0"].answer(request).digest


@pytest.mark.parametrize("step", list(Step)[2:])
def test_earlier_steps_are_not_answered_again(step):
    server, clients = until(step)
    earlier = Message({}, {**server.request("c0").scalars, "step": int(step) - 1})
    with pytest.raises(Refusal, match="It is answered once"):
        clients["c0"].answer(earlier)


def test_a_step_ahead_is_refused():
    server, clients = until(Step.SHARES)
    ahead = replace(server.request("c0"), scalars={**server.request("c0").scalars, "step": 4})
    with pytest.raises(Refusal, match="Step 4 does not follow step 1"):
        clients["c0"].answer(ahead)


def test_a_second_subset_is_refused_at_both_steps_that_name_one():
    """The classic attack: the sums of two sets differ by one client's vector."""
    for step in (Step.MASKED, Step.CONFIRM):
        server, clients = until(step)
        whole = server.request("c0")
        clients["c0"].answer(whole)
        with pytest.raises(Refusal, match="a second set of clients could show single vectors"):
            clients["c0"].answer(changed(whole, places=np.array([0, 1, 2])))


def test_two_subsets_for_two_halves_open_nothing():
    """Each half signs its own set; neither set gets the signatures that shares are handed out for."""
    server, clients = until(Step.CONFIRM)
    whole = server.request("c0")
    part = changed(whole, places=np.array([0, 1, 2]))
    signatures = np.zeros((4, 64), np.uint8)
    for place, request in enumerate((whole, part, part, whole)):
        signatures[place] = clients[f"c{place}"].answer(request).arrays["signature"]
    for places in ([0, 1, 2], [0, 1, 2, 3], [0, 3]):
        asked = Message(
            {"places": np.array(places), "signatures": signatures},
            {**whole.scalars, "step": int(Step.UNMASK)},
        )
        for name in clients:
            with pytest.raises(Refusal, match=r"different sets|threshold|clients that are left"):
                clients[name].answer(asked)


def test_clients_that_were_shown_other_senders_of_shares_open_nothing():
    """c0 masks with c3, and c1 does not: the sum of the three survivors would be wrong."""
    server, clients = until(Step.MASKED)
    survivors = np.array([0, 1, 2])
    confirm = int(Step.CONFIRM)
    signatures = np.zeros((4, 64), np.uint8)
    for name in ("c0", "c1", "c2"):
        request = server.request(name)
        clients[name].answer(changed(request, places=survivors) if name == "c1" else request)
        asked = Message({"places": survivors}, {**request.scalars, "step": confirm})
        signatures[int(name[1])] = clients[name].answer(asked).arrays["signature"]
    asked = Message(
        {"places": survivors, "signatures": signatures},
        {**server.request("c0").scalars, "step": int(Step.UNMASK)},
    )
    with pytest.raises(Refusal, match="'c1' did not sign the set"):
        clients["c0"].answer(asked)


def test_forged_signatures_of_survivors_open_nothing():
    server, clients = until(Step.UNMASK)
    request = server.request("c0")
    forged = request.arrays["signatures"].copy()
    forged[2] = np.frombuffer(Identity.fresh().sign(b"survivors"), np.uint8)
    with pytest.raises(Refusal, match="'c2' did not sign the set"):
        clients["c0"].answer(changed(request, signatures=forged))
    # the true request is still answered
    assert clients["c0"].answer(request).arrays["shares"].any()


def test_too_few_signers_open_nothing():
    server, clients = until(Step.UNMASK)
    with pytest.raises(Refusal, match="2 of 4 clients are left, and the threshold is 3"):
        clients["c0"].answer(changed(server.request("c0"), places=np.array([0, 1])))


@pytest.mark.parametrize("step", [Step.SHARES, Step.MASKED, Step.CONFIRM])
def test_fewer_clients_than_the_threshold_end_the_round(step):
    server, clients = until(step)
    with pytest.raises(Refusal, match="2 of 4 clients are left"):
        clients["c0"].answer(changed(server.request("c0"), places=np.array([0, 1])))


@pytest.mark.parametrize("step", [Step.MASKED, Step.CONFIRM])
def test_a_client_that_is_said_to_have_dropped_out_answers_nothing(step):
    server, clients = until(step)
    with pytest.raises(Refusal, match="claims that this client dropped out"):
        clients["c0"].answer(changed(server.request("c0"), places=np.array([1, 2, 3])))


@pytest.mark.parametrize("step", [Step.MASKED, Step.CONFIRM])
@pytest.mark.parametrize("places", [[0, 1, 2, 4], [0, 0, 1, 2], [2, 1, 0], [-1, 0, 1, 2]])
def test_clients_that_are_not_left_are_not_counted(step, places):
    server, clients = until(step)
    with pytest.raises(Refusal, match="in rising order"):
        clients["c0"].answer(changed(server.request("c0"), places=np.array(places)))


def test_swapped_keys_are_refused():
    server, clients = until(Step.SHARES)
    request = server.request("c0")
    for name in ("channel_keys", "mask_keys", "commitments"):
        swapped = request.arrays[name].copy()
        swapped[1] = np.frombuffer(keys.public_of(keys.fresh()), np.uint8)
        with pytest.raises(Refusal, match="The keys of 'c1' are not signed"):
            clients["c0"].answer(changed(request, **{name: swapped}))


def test_a_client_that_announces_another_s_mask_key_is_refused():
    """Its masks and the other's would cancel in the vector of a client between the two."""
    server, clients = until(Step.SHARES)
    request = server.request("c1")
    arrays = {name: request.arrays[name].copy() for name in ("mask_keys", "signatures")}
    arrays["mask_keys"][2] = arrays["mask_keys"][0]
    thief = clients["c2"].member
    content = keys_content(
        thief.terms,
        "c2",
        request.arrays["channel_keys"][2].tobytes(),
        arrays["mask_keys"][2].tobytes(),
        request.arrays["commitments"][2].tobytes(),
    )
    arrays["signatures"][2] = np.frombuffer(thief.identity.sign(content), np.uint8)
    with pytest.raises(Refusal, match="A public key of 'c2' is one of 'c0', too"):
        clients["c1"].answer(changed(request, **arrays))


def test_a_server_that_swaps_ones_own_keys_is_noticed():
    """It replays what this client signed in the same round at another machine."""
    server, clients = until(Step.SHARES)
    own = clients["c0"].member
    twin = Client(
        name="c0",
        identity=own.identity,
        terms=own.terms,
        vector=own.vector,
        journal=Volatile(),
    )
    first = Server(own.terms)
    announced = twin.answer(first.request("c0"))
    request = server.request("c0")
    arrays = {}
    for many, one in (
        ("channel_keys", "channel_key"),
        ("mask_keys", "mask_key"),
        ("commitments", "commitment"),
        ("signatures", "signature"),
    ):
        arrays[many] = request.arrays[many].copy()
        arrays[many][0] = announced.arrays[one]
    with pytest.raises(Refusal, match="other keys for this client"):
        clients["c0"].answer(changed(request, **arrays))


def test_keys_of_an_earlier_round_are_refused():
    identities = {name: Identity.fresh() for name in VECTORS}
    stale, _ = until(Step.SHARES, identities=identities, round=0)
    server, clients = until(Step.SHARES, identities=identities, round=1)
    old = Message(stale.request("c0").arrays, server.request("c0").scalars)
    with pytest.raises(Refusal, match="they are stale"):
        clients["c0"].answer(old)


def test_a_message_of_another_round_or_of_other_terms_is_refused():
    identities = {name: Identity.fresh() for name in VECTORS}
    _, clients = until(Step.SHARES, identities=identities)
    later, _ = until(Step.SHARES, identities=identities, round=1)
    with pytest.raises(Refusal, match=r"of round 1, and this is round 0: it is stale"):
        clients["c0"].answer(later.request("c0"))
    other, _ = until(Step.SHARES, identities=identities, threshold=4)
    with pytest.raises(Refusal, match="other terms"):
        clients["c0"].answer(other.request("c0"))
    with pytest.raises(Refusal, match="no step 9"):
        clients["c0"].answer(Message({}, {**other_header(clients["c0"]), "step": 9}))


def other_header(client: Client) -> dict:
    return {"round": client.member.terms.round, "terms": client.member.terms.digest.hex()}


def test_shares_that_were_changed_on_the_way_open_nothing_and_draw_no_vector():
    server, clients = until(Step.MASKED)
    drawn = []
    client = clients["c0"]
    client.member = replace(client.member, vector=lambda: drawn.append(1))
    request = server.request("c0")
    sealed = request.arrays["sealed"].copy()
    sealed[2, 20] ^= 1
    with pytest.raises(Refusal, match="The shares of 'c2' for 'c0' do not open"):
        client.answer(changed(request, sealed=sealed))
    assert not drawn


@pytest.mark.parametrize("drops", [{}, {Step.MASKED: ["c1"]}, {Step.SHARES: ["c3"]}])
def test_a_client_hands_out_one_share_of_each_other_never_both(drops):
    terms, clients = example(VECTORS)
    server = Server(terms)
    handed = {}
    before = {}

    def record(sent):
        if sent.content.scalars["step"] != Step.UNMASK:
            return
        if sent.by_client:
            handed[sent.client] = sent.content.arrays["shares"]
        else:
            before[sent.client] = clients[sent.client]._memory

    run(server, clients, drops, record)
    assert len(handed) >= terms.threshold
    for name, shares in handed.items():
        memory = before[name]
        for place in range(4):
            key_share, seed_share = np.split(memory.shares[place], 2)
            survived = terms.roster.names[place] in server.survivors
            meant = seed_share if survived else key_share
            other = key_share if survived else seed_share
            shared = place in memory.sharers
            assert (shares[place] == meant).all() if shared else not shares[place].any()
            assert not shared or (shares[place] != other).any()


def test_one_vector_is_masked_for_a_release_ever():
    """A failed round that is tried again needs another release, with other noise."""
    identities = {name: Identity.fresh() for name in VECTORS}
    journals = {name: Volatile() for name in VECTORS}
    kept = {"identities": identities, "journals": journals, "release": "moments 1"}
    server, clients = until(Step.MASKED, round=0, **kept)
    clients["c0"].answer(server.request("c0"))
    again, clients = until(Step.MASKED, round=1, **kept)
    with pytest.raises(Refusal, match="'moments 1' was masked in another round"):
        clients["c0"].answer(again.request("c0"))
    # one that masked nothing yet may go on
    clients["c1"].answer(again.request("c1"))


def test_a_round_that_was_left_is_answered_no_more():
    server, clients = until(Step.CONFIRM)
    clients["c0"].leave()
    for step in (Step.CONFIRM, Step.UNMASK):
        request = Message({}, {**server.request("c0").scalars, "step": int(step)})
        with pytest.raises(Refusal, match="answered once"):
            clients["c0"].answer(request)


@pytest.mark.parametrize("vector", [[1.0, 2.0], [1, 2, 3]])
def test_a_vector_of_another_shape_or_kind_is_refused(vector):
    server, clients = until(Step.MASKED)
    client = clients["c0"]
    client.member = replace(client.member, vector=lambda: np.array(vector))
    with pytest.raises(Refusal, match="A vector must be int64"):
        client.answer(server.request("c0"))


def test_a_client_looks_at_no_entry_and_the_server_refuses_the_sum():
    """A refusal by one client's entries would tell more of its records than the noisy sum does."""
    server, clients = until(Step.MASKED)
    client = clients["c0"]
    client.member = replace(client.member, vector=lambda: np.full(2, -(2**63)))
    with pytest.raises(Refusal, match="outside of 4 times the bound"):
        run(server, clients)


def test_a_roster_with_another_key_for_this_client_is_refused():
    terms, clients = example(VECTORS)
    with pytest.raises(Refusal, match="another key for 'c0'"):
        Client(
            name="c0",
            identity=Identity.fresh(),
            terms=terms,
            vector=clients["c0"].member.vector,
            journal=Volatile(),
        )


def test_no_text_of_an_object_holds_a_secret():
    server, clients = until(Step.MASKED)
    client = clients["c0"]
    reply = client.answer(server.request("c0"))
    memory = client._memory
    objects = (client, memory, client.member, client.member.identity, reply)
    texts = " ".join(map(repr, objects))
    for secret in (memory.mask_key, memory.channel_key, memory.seed):
        assert secret.hex() not in texts and repr(secret)[2:-1] not in texts
    assert str(reply.arrays["masked"][0]) not in texts
