"""Tests the server against clients that send garbage: the right sum, or a refusal with the cause."""

import numpy as np
import pytest

from pipelines.privacy.secure_sums import keys, shamir
from pipelines.privacy.secure_sums.announced import keys_content
from pipelines.privacy.secure_sums.client import Client
from pipelines.privacy.secure_sums.in_process import example, run
from pipelines.privacy.secure_sums.messages import Message, Step
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.server import Server

VECTORS = {"c0": [1] * 4, "c1": [10] * 4, "c2": [100] * 4, "c3": [1000] * 4}


class Liar:
    """Answers as its client does, and changes the answer of one step."""

    def __init__(self, client: Client, step: Step, change):
        self.client = client
        self.step = step
        self.change = change

    def answer(self, request: Message) -> Message:
        reply = self.client.answer(request)
        return self.change(reply) if reply.scalars["step"] == self.step else reply


def with_liar(step: Step, change, drops=None) -> tuple[Server, list[int]]:
    """Returns the server after a round in which c1 lies, and the sum."""
    terms, clients = example(VECTORS)
    server = Server(terms)
    total = run(server, {**clients, "c1": Liar(clients["c1"], step, change)}, drops)
    return server, total.tolist()


def random_bytes(reply: Message) -> Message:
    arrays = {}
    for name, array in reply.arrays.items():
        noise = np.random.default_rng(1).bytes(array.nbytes)
        arrays[name] = np.frombuffer(noise, array.dtype).reshape(array.shape)
    return Message(arrays, reply.scalars)


CASES = {
    "nothing": lambda reply: Message({}, reply.scalars),
    "another kind": lambda reply: Message(
        {name: array.astype(np.float64) for name, array in reply.arrays.items()}, reply.scalars
    ),
    "another shape": lambda reply: Message(
        {name: array[:-1] for name, array in reply.arrays.items()}, reply.scalars
    ),
    "lists": lambda reply: Message(
        {name: array.tolist() for name, array in reply.arrays.items()}, reply.scalars
    ),
    "a stale round": lambda reply: Message(reply.arrays, {**reply.scalars, "round": 7}),
    "another step": lambda reply: Message(
        reply.arrays, {**reply.scalars, "step": reply.scalars["step"] % 5 + 1}
    ),
    "other terms": lambda reply: Message(reply.arrays, {**reply.scalars, "terms": "00"}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("step", list(Step))
def test_an_answer_that_is_no_answer_counts_as_dropped_out(step, case):
    server, total = with_liar(step, CASES[case])
    assert total == [1111 if step > Step.MASKED else 1101] * 4
    assert set(server.dropped) == {"c1"}
    assert server.dropped["c1"].startswith(f"step {int(step)}: ")


@pytest.mark.parametrize("step", [Step.KEYS, Step.CONFIRM])
def test_a_signature_that_is_none_counts_as_dropped_out(step):
    server, total = with_liar(step, random_bytes)
    assert total == [1111 if step == Step.CONFIRM else 1101] * 4
    assert "signature" in server.dropped["c1"]


def test_sealed_garbage_ends_in_a_refusal_that_names_its_sender():
    with pytest.raises(Refusal, match="The shares of 'c1' for 'c0' do not open"):
        with_liar(Step.SHARES, random_bytes)


def test_a_garbage_vector_ends_in_a_refusal():
    with pytest.raises(Refusal, match="outside of 4 times the bound: a client sent garbage"):
        with_liar(Step.MASKED, random_bytes)


@pytest.mark.parametrize("drops", [{}, {Step.MASKED: ["c3"]}])
def test_a_garbage_share_ends_in_a_refusal_whose_secret_it_was_of(drops):
    with pytest.raises(Refusal, match=r"shares of 'c\d' do not give what it announced"):
        with_liar(Step.UNMASK, random_bytes, drops)


@pytest.mark.parametrize(("secret", "drops"), [("seed", {}), ("mask_key", {Step.MASKED: ["c1"]})])
def test_a_client_that_shares_another_secret_than_it_announced_is_named(secret, drops, monkeypatch):
    """Its shares open and are well-formed, but they are those of other keys."""
    terms, clients = example(VECTORS)
    server = Server(terms)
    server.take({name: clients[name].answer(server.request(name)) for name in server.asked})
    announced = getattr(clients["c1"]._memory, secret)
    split = shamir.split

    def split_another(whole, **count):
        return split(keys.fresh() if whole == announced else whole, **count)

    monkeypatch.setattr(shamir, "split", split_another)
    with pytest.raises(Refusal, match="shares of 'c1' do not give what it announced"):
        run(server, clients, drops)


@pytest.mark.parametrize("forged", ["channel_key", "mask_key"])
def test_a_client_whose_key_gives_no_secret_is_left_behind(forged):
    """The others would refuse to go on, and could not say whose key it is."""
    terms, clients = example(VECTORS)

    def forge(reply: Message) -> Message:
        arrays = {**reply.arrays, forged: np.zeros(keys.KEY, np.uint8)}
        names = ("channel_key", "mask_key", "commitment")
        content = keys_content(terms, "c1", *(arrays[name].tobytes() for name in names))
        signature = clients["c1"].member.identity.sign(content)
        arrays["signature"] = np.frombuffer(signature, np.uint8)
        return Message(arrays, reply.scalars)

    server = Server(terms)
    total = run(server, {**clients, "c1": Liar(clients["c1"], Step.KEYS, forge)})
    assert total.tolist() == [1101] * 4
    assert "gives no shared secret" in server.dropped["c1"]


def test_a_clients_own_refusal_is_among_the_reasons():
    terms, clients = example(VECTORS)
    server = Server(terms)
    with pytest.raises(Refusal, match="'c1', step 1: no more budget; 'c2', step 1: it did not"):
        server.take(
            {
                "c0": clients["c0"].answer(server.request("c0")),
                "c1": Refusal("no more budget"),
                "c3": clients["c3"].answer(server.request("c3")),
            }
        )
