"""Tests that a killed client goes on with the same bytes, or refuses."""

import stat
from pathlib import Path

import numpy as np
import pytest

from pipelines.privacy.secure_sums.client import Client
from pipelines.privacy.secure_sums.in_process import example, run
from pipelines.privacy.secure_sums.journal import Folder, Volatile
from pipelines.privacy.secure_sums.memory import Memory, parsed
from pipelines.privacy.secure_sums.messages import Step
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Identity
from pipelines.privacy.secure_sums.server import Server

VECTORS = {"c0": [1, 2], "c1": [10, 20], "c2": [100, 200]}
IDENTITIES = {name: Identity.fresh() for name in VECTORS}


class Killed(Exception):
    pass


class Failing(Folder):
    """Dies at one save, before or after the bytes are on the disk."""

    def __init__(self, path: Path, at: Step, *, written: bool):
        super().__init__(path)
        self.at = at
        self.written = written

    def save(self, terms, memory: Memory) -> None:
        if memory.step == self.at and not self.written:
            raise Killed
        super().save(terms, memory)
        if memory.step == self.at:
            raise Killed


def started(path: Path, journal=None, **others) -> tuple[Server, dict[str, Client]]:
    """Returns a server and clients, of which c0 has a journal in a folder."""
    journals = {name: Volatile() for name in VECTORS}
    journals["c0"] = journal or Folder(path)
    terms, clients = example(VECTORS, identities=IDENTITIES, journals=journals, **others)
    return Server(terms), clients


def reborn(client: Client, path: Path) -> Client:
    """Returns the client as a new process would make it, from its journal."""
    client._journal.close()
    member = client.member
    return Client(
        name=member.name,
        identity=member.identity,
        terms=member.terms,
        vector=member.vector,
        journal=Folder(path),
    )


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("step", list(Step))
def test_a_client_that_is_killed_at_any_step_goes_on_to_the_right_sum(tmp_path, step, written):
    server, clients = started(tmp_path, Failing(tmp_path, step, written=written))
    while not server.done:
        replies = {}
        for name in server.asked:
            request = server.request(name)
            try:
                replies[name] = clients[name].answer(request)
            except Killed:
                clients[name] = reborn(clients[name], tmp_path)
                replies[name] = clients[name].answer(request)
        server.take(replies)
    assert server.total.tolist() == [111, 222]
    assert not server.dropped


@pytest.mark.parametrize("step", list(Step))
def test_a_client_that_was_killed_sends_the_same_bytes_again(tmp_path, step):
    server, clients = started(tmp_path)
    while server.step < step:
        server.take({name: clients[name].answer(server.request(name)) for name in server.asked})
    request = server.request("c0")
    first = clients["c0"].answer(request)
    again = reborn(clients["c0"], tmp_path)
    assert again.answer(request).digest == first.digest
    assert again.answer(request).arrays.keys() == first.arrays.keys()


def test_a_killed_client_does_not_answer_a_second_subset(tmp_path):
    server, clients = started(tmp_path, threshold=2)
    while server.step < Step.CONFIRM:
        server.take({name: clients[name].answer(server.request(name)) for name in server.asked})
    clients["c0"].answer(server.request("c0"))
    again = reborn(clients["c0"], tmp_path)
    server.left = (0, 1)
    with pytest.raises(Refusal, match="answered once"):
        again.answer(server.request("c0"))


def test_the_vector_is_drawn_once_where_its_masked_form_was_written(tmp_path):
    """Two draws of noise under the same masks would show their difference."""
    server, clients = started(tmp_path)
    while server.step < Step.MASKED:
        server.take({name: clients[name].answer(server.request(name)) for name in server.asked})
    drawn = []

    def vector() -> np.ndarray:
        drawn.append(1)
        return np.array([len(drawn), 0])

    object.__setattr__(clients["c0"].member, "vector", vector)
    first = clients["c0"].answer(server.request("c0"))
    again = reborn(clients["c0"], tmp_path).answer(server.request("c0"))
    assert len(drawn) == 1
    assert (first.arrays["masked"] == again.arrays["masked"]).all()


def test_a_finished_round_leaves_no_secret_and_is_never_begun_again(tmp_path):
    server, clients = started(tmp_path)
    secrets = []

    def spy(sent):
        memory = clients["c0"]._memory
        secrets.extend([memory.mask_key, memory.channel_key, memory.seed])

    run(server, clients, record=spy)
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    found = [secret for secret in secrets if secret]
    assert len(set(found)) == 3
    assert not any(secret in content for secret in found)
    again = reborn(clients["c0"], tmp_path)
    with pytest.raises(Refusal, match="answered once"):
        again.answer(Server(again.member.terms).request("c0"))


def test_a_round_that_was_begun_under_other_terms_is_refused(tmp_path):
    server, clients = started(tmp_path)
    clients["c0"].answer(server.request("c0"))
    clients["c0"]._journal.close()
    with pytest.raises(Refusal, match="begun under other terms"):
        started(tmp_path, bound=7)


def test_a_release_stays_claimed_for_other_processes(tmp_path):
    alike = {"release": "moments 1", "threshold": 3}
    server, clients = started(tmp_path, round=0, **alike)
    assert run(server, clients).tolist() == [111, 222]
    clients["c0"]._journal.close()
    server, clients = started(tmp_path, round=1, **alike)
    with pytest.raises(Refusal, match="'moments 1' was masked in another round"):
        run(server, clients)


@pytest.mark.parametrize("damage", [lambda text: text[:-9], lambda text: text[:40] + b"x" * 99])
def test_a_damaged_journal_is_refused(tmp_path, damage):
    server, clients = started(tmp_path)
    clients["c0"].answer(server.request("c0"))
    (file,) = tmp_path.glob("round-*")
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(Refusal, match="is damaged"):
        reborn(clients["c0"], tmp_path)


def test_one_process_holds_a_folder(tmp_path):
    folder = Folder(tmp_path)
    with pytest.raises(Refusal, match="Another process holds"):
        Folder(tmp_path)
    folder.close()
    Folder(tmp_path).close()


def test_no_other_user_reads_the_folder(tmp_path):
    path = tmp_path / "sums"
    Folder(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_memory_is_read_as_it_was_written(tmp_path):
    server, clients = started(tmp_path)
    for _ in range(4):
        replies = {}
        for name in server.asked:
            replies[name] = clients[name].answer(server.request(name))
            memory = clients[name]._memory
            read = parsed(memory.as_bytes())
            assert read.as_bytes() == memory.as_bytes()
            assert (read.step, read.sharers, read.survivors) == (
                memory.step,
                memory.sharers,
                memory.survivors,
            )
            assert read.seed == memory.seed
        server.take(replies)
