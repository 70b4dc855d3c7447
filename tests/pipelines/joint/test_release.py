"""Tests a joint release between machines, through the classes that NVFlare calls, without a network."""

import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

import apart
from apart import CLIENTS, EPSILON, GENERATOR, Apart

from pipelines import config, paths, releases
from pipelines.datasets import shards
from pipelines.errors import UserError
from pipelines.federation.network.client import LOCAL
from pipelines.federation.network.flare import client as rounds
from pipelines.federation.network.flare.names import HOME, SERVERS_CELL
from pipelines.files import read_arrays, read_json, write_json
from pipelines.guard import provenance
from pipelines.joint import client as joint_client
from pipelines.joint import joint_run, leading
from pipelines.joint.client import Client
from pipelines.joint.joint_run import JointRun
from pipelines.privacy.secure_sums.messages import Step
from pipelines.synthesis import joint_release
from stages import export_synthetic, train_generator
from stages import joint_release as stage

RUN = JointRun("own", GENERATOR)


@pytest.fixture(scope="module")
def _apart(_checkout, tmp_path_factory) -> Apart:
    return apart.made(_checkout, tmp_path_factory.mktemp("apart"))


@pytest.fixture
def federation(_apart, tmp_path, monkeypatch) -> "Federation":
    """Returns a federation whose clients have started, each in a copy of its folder."""
    monkeypatch.delenv("FEDLENS_LEDGERS", raising=False)
    monkeypatch.delenv(LOCAL, raising=False)
    folders = {"whole": _apart.whole, "server": _apart.server, **_apart.homes}
    for name, project in folders.items():
        shutil.copytree(project.path, tmp_path / name)
        folders[name] = type(project)(tmp_path / name)
    copied = Apart(folders.pop("whole"), folders.pop("server"), folders)
    monkeypatch.chdir(copied.server.path)
    return Federation(copied, monkeypatch)


class Federation:
    """Carries calls to clients in this process, each in its own folder.

    Attributes:
        apart: The folders.
        clients: NVFlare's object of each client.
        told: The names of the calls, in turn.
        between: Is called before each call with its name, the client and its arguments. What it
            returns is sent instead, and None is not sent at all.
    """

    def __init__(self, folders: Apart, monkeypatch):
        self.apart = folders
        self.monkeypatch = monkeypatch
        self.clients: dict[str, Client] = {}
        self.told: list[str] = []
        self.between = lambda name, client, arguments: arguments

    def start(self) -> None:
        """Starts a new job: each client's process is new."""
        for client, project in self.apart.homes.items():
            self.monkeypatch.setenv(HOME, str(project.path))
            with contextlib.chdir(project.path):
                self.clients[client] = Client()

    def call(self, name: str, client: str, **arguments) -> dict:
        """Returns what a client answers to the server of its job."""
        here = SimpleNamespace(caller=SERVERS_CELL, site_name=client)
        self.monkeypatch.setattr(rounds, "collab", here)
        self.monkeypatch.setattr(joint_client, "collab", here)
        with contextlib.chdir(self.apart.homes[client].path):
            return getattr(self.clients[client], name)(**arguments)

    def ask(self, name: str, arguments: Mapping[str, dict]) -> dict[str, dict]:
        """Does what `NetworkEngine.ask_each` does, with `on_loss: fail`."""
        self.told.append(name)
        answers = {}
        for client, given in arguments.items():
            sent = self.between(name, client, given)
            if sent is None:
                continue
            answers[client] = self.call(name, client, **sent)
            if "refused" in answers[client]:
                raise UserError(f"{client} was lost ({name}): {answers[client]['refused']}")
        return answers

    def release(self) -> leading.Traffic:
        """Makes a joint release, in a new job."""
        self.start()
        params = config.load()
        roster = joint_run.roster_of(params)
        return leading.release(RUN.planned(params), RUN.names, roster, self.ask)

    @contextlib.contextmanager
    def home(self, client: str):
        """Yields a client's parameters, in its folder."""
        with contextlib.chdir(self.apart.homes[client].path):
            yield config.load()

    def entered(self, client: str) -> list[dict]:
        """Returns the lines of a client's ledger."""
        path = self.apart.homes[client].path / f"ledgers/own/{client}.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def charged(self) -> dict[str, int]:
        """Returns how many releases each ledger has entered."""
        counts = {}
        for client in CLIENTS:
            counts[client] = sum(line["event"] == "open" for line in self.entered(client))
        return counts

    def export(self, client: str) -> dict:
        """Makes a client's set by the stages, and returns its card."""
        with self.home(client) as params:
            stage.run(params, "own")
            train_generator.run(params, "own", client, GENERATOR)
            export_synthetic.run(params, "own", client, GENERATOR)
            return read_json(paths.synthetic("own", client, GENERATOR) / "card.json")


def state(project, client: str) -> dict[str, np.ndarray]:
    place = project.path / paths.joint("own") / GENERATOR / client
    return read_arrays(place / "generator.safetensors")


def test_each_client_is_charged_once_and_samples_its_own_set_of_one_generator(federation):
    traffic = federation.release()
    assert federation.charged() == dict.fromkeys(CLIENTS, 1)
    assert federation.told.count("step_together") == 10
    cards = {client: federation.export(client) for client in CLIENTS}
    states = [state(federation.apart.homes[client], client) for client in CLIENTS]
    for client, card in cards.items():
        assert card["privacy"]["epsilon"] == EPSILON
        assert card["privacy"]["guarantee"] == "formal"
        assert "at most 1 of the 3 clients" in card["privacy"]["statement"]
        assert card["together"] == cards["c0"]["together"]
        assert card["together"][client] == card["release"]
        (entry,) = [line for line in federation.entered(client) if line["event"] == "open"]
        assert entry["parameters"]["client"] == client
    assert len(set(cards["c0"]["together"].values())) == 3
    for name, value in states[0].items():
        assert all(np.array_equal(other[name], value) for other in states[1:])
    # the masked vectors alone have 8 bytes for each released number
    numbers = entry["parameters"]["released_numbers"]
    assert traffic.up > 3 * 8 * numbers and traffic.down > 3 * 8 * numbers


def test_with_noise_for_tests_it_is_the_release_of_one_process_to_the_last_bit(federation):
    federation.monkeypatch.setenv(LOCAL, "1")
    federation.apart.edit(lambda params: params["privacy"].update(noise="seeded_for_tests"))
    federation.apart.whole.edit(lambda params: params["federation"].update(engine="inprocess"))
    federation.release()
    with federation.home("c1") as params:
        stage.run(params, "own")
    with contextlib.chdir(federation.apart.whole.path):
        stage.run(config.load(), "own")
    together = state(federation.apart.whole, "c1")
    for name, value in state(federation.apart.homes["c1"], "c1").items():
        np.testing.assert_array_equal(value, together[name])


def test_the_total_of_a_sum_is_that_of_all_records_without_noise(federation, monkeypatch):
    """A negative control of the test above: one client's records more are seen in the totals."""
    federation.monkeypatch.setenv(LOCAL, "1")
    infinite = {client: {"epsilon": float("inf")} for client in CLIENTS}
    federation.apart.whole.edit(lambda params: params.update(clients=infinite))
    federation.apart.server.edit(lambda params: params.update(clients=infinite))
    for client, home in federation.apart.homes.items():
        home.edit(lambda params, client=client: params.update(clients={client: infinite[client]}))
    totals = []

    def keep(name, client, arguments):
        if name == "take_together" and client == "c0":
            totals.append(arguments["total"])
        return arguments

    federation.between = keep
    federation.release()
    params = config.load()
    planned = RUN.planned(params)
    with contextlib.chdir(federation.apart.whole.path):
        records = [shards.read("own", client, "train") for client in CLIENTS]
    scale = planned.plan.shares.scale
    released = []
    for total in totals:
        expected = sum(
            planned.module.next_sum(shard, planned.plan, scale, released) for shard in records
        )
        assert np.array_equal(total, expected)
        released.append(total / scale)
    assert len(totals) == 2


def test_a_ledger_that_refuses_stops_the_release_before_any_ledger_is_charged(federation):
    capped = {"c2": {"epsilon": EPSILON, "lifetime_epsilon": 1.0}}
    federation.apart.homes["c2"].edit(lambda params: params.update(clients=capped))
    with pytest.raises(UserError, match=r"c2 was lost \(ready_together\): its own parameters"):
        federation.release()
    assert federation.charged() == dict.fromkeys(CLIENTS, 0)
    assert "begin_together" not in federation.told


def test_a_client_that_is_not_there_stops_it_before_any_ledger_is_charged(federation):
    federation.between = lambda name, client, given: None if client == "c1" else given
    with pytest.raises(UserError, match="needs all its clients, and c1 left"):
        federation.release()
    assert federation.charged() == dict.fromkeys(CLIENTS, 0)


@pytest.mark.parametrize("step", list(Step))
def test_a_client_that_falls_silent_ends_it_without_a_sum(federation, step):
    def silent(name, client, arguments):
        now = arguments.get("scalars", {}).get("step")
        return None if client == "c1" and now == step else arguments

    federation.between = silent
    with pytest.raises(UserError, match=r"no sum: 2 of 3 clients are left .*'c1', step"):
        federation.release()
    # what was sent cannot be taken back
    assert federation.charged() == dict.fromkeys(CLIENTS, 1)


def test_another_attempt_is_charged_and_the_last_one_counts(federation):
    federation.release()
    first = federation.export("c0")
    federation.release()
    second = federation.export("c0")
    assert federation.charged() == dict.fromkeys(CLIENTS, 2)
    assert first["release"] != second["release"]
    last = [line for line in federation.entered("c0") if line["event"] == "open"][-1]
    with federation.home("c0") as params:
        known = releases.closed_by_public_name(params, "own", "c0")
    assert known[second["release"]]["fingerprint"] == last["fingerprint"]


def test_before_the_release_the_stage_says_what_makes_it(federation):
    with federation.home("c0") as params, pytest.raises(UserError) as refusal:
        stage.run(params, "own")
    assert "c0 has made no joint_moments with the others of its roster" in str(refusal.value)
    assert "`python -m pipelines.joint --dataset own`" in str(refusal.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda params: params["clients"]["c0"].update(epsilon=2.0),
        lambda params: params["privacy"].update(trust="none"),
        lambda params: params.update(seed=17),
    ],
)
def test_a_release_under_other_parameters_is_another_one(federation, change):
    federation.release()
    federation.apart.homes["c0"].edit(change)
    with (
        federation.home("c0") as params,
        pytest.raises(UserError, match="has made no joint_moments"),
    ):
        stage.run(params, "own")


def test_a_release_of_other_records_is_another_one(federation):
    federation.release()
    with federation.home("c0") as params:
        shard = shards.read("own", "c0", "train")
        place = paths.shards("own") / "c0/train.npz"
        content = dict(np.load(place))
        content["images"] = 255 - content["images"]
        np.savez(place, **content)
        assert not np.array_equal(shards.read("own", "c0", "train").images, shard.images)
        with pytest.raises(UserError, match="has made no joint_moments"):
            stage.run(params, "own")


def test_a_damaged_list_of_names_is_named(federation):
    federation.release()
    with federation.home("c0") as params:
        stage.run(params, "own")
        file = paths.joint("own") / GENERATOR / "c0/release.json"
        write_json(file, {**read_json(file), "together": ["c0"]})
        with pytest.raises(UserError, match="names no releases of clients"):
            train_generator.run(params, "own", "c0", GENERATOR)


def ready(federation: Federation, client: str = "c0") -> None:
    federation.start()
    assert federation.call("ready_together", client, names=RUN.names) == {}


def test_a_client_answers_nothing_before_its_ledger_has_entered_the_release(federation):
    ready(federation)
    for name, arguments in (
        ("step_together", {"number": 0, "arrays": {}, "scalars": {"step": 1}}),
        ("take_together", {"number": 0, "total": np.zeros((3, 4), np.int64)}),
        ("finish_together", {"together": dict.fromkeys(CLIENTS, "a")}),
    ):
        assert "refused" in federation.call(name, "c0", **arguments)
        assert "a step before" in federation.call(name, "c1", **arguments)["refused"]
    assert federation.charged()["c0"] == 0
    assert "name" in federation.call("begin_together", "c0", release="a release")
    assert federation.charged()["c0"] == 1


def test_a_release_begins_once_in_a_job(federation):
    ready(federation)
    federation.call("begin_together", "c0", release="a release")
    again = federation.call("begin_together", "c0", release="another")
    assert again == {"refused": "this release has begun: another one needs a job of its own"}
    assert (
        "this job has begun" in federation.call("ready_together", "c0", names=RUN.names)["refused"]
    )
    assert federation.charged()["c0"] == 1


@pytest.mark.parametrize("name", ["", 3, None, "x" * 501])
def test_a_release_without_a_name_is_not_entered(federation, name):
    ready(federation)
    assert federation.call("begin_together", "c0", release=name) == {
        "refused": "a release needs a name"
    }
    assert federation.charged()["c0"] == 0


def test_nobody_but_the_jobs_server_is_answered(federation):
    ready(federation)
    here = SimpleNamespace(caller="c1", site_name="c0")
    federation.monkeypatch.setattr(rounds, "collab", here)
    client = federation.clients["c0"]
    expected = {"refused": "only the server of this job is answered"}
    assert client.begin_together(release="a release") == expected
    assert client.step_together(number=0, arrays={}, scalars={}) == expected
    assert federation.charged()["c0"] == 0


def test_a_server_that_tells_clients_different_names_gets_no_sum(federation):
    def two_names(name, client, arguments):
        if name == "begin_together" and client == "c2":
            return {"release": "another release"}
        return arguments

    federation.between = two_names
    with pytest.raises(UserError, match=r"c2 was lost .* The message is of other terms"):
        federation.release()


def test_a_sum_is_made_once_and_in_its_order(federation):
    seen = {}

    def keep(name, client, arguments):
        if client == "c0" and name == "step_together":
            seen.setdefault((arguments["number"], arguments["scalars"]["step"]), arguments)
        return arguments

    federation.between = keep
    federation.release()
    for arguments in seen.values():
        answer = federation.call("step_together", "c0", **arguments)
        assert answer == {"refused": "this step is of no sum that this client makes now"}
    # a client whose process is new knows nothing of a sum that was begun
    federation.start()
    answer = federation.call("step_together", "c0", **seen[0, 3])
    assert answer == {"refused": "a step before the release has begun"}


@pytest.mark.parametrize(
    "total",
    [
        np.zeros((3, 2), np.int64),
        np.zeros((3, 2)),
        np.full((3, 2), np.nan),
        [1, 2],
        None,
    ],
)
def test_a_total_that_is_none_is_refused_and_nothing_is_stored(federation, total):
    def spoil(name, client, arguments):
        spoiled = name == "take_together" and client == "c1"
        return {**arguments, "total": total} if spoiled else arguments

    federation.between = spoil
    with pytest.raises(UserError, match=r"c1 was lost \(take_together\): a total must be int64"):
        federation.release()
    assert not list((federation.apart.homes["c1"].path / "ledgers/own").glob("releases/*"))


@pytest.mark.parametrize(
    "together",
    [
        {},
        {"c0": "a"},
        dict.fromkeys(CLIENTS, 3),
        dict.fromkeys(CLIENTS, "a\nb"),
        ["c0", "c1", "c2"],
    ],
)
def test_names_that_are_none_are_refused_and_nothing_is_stored(federation, together):
    def spoil(name, client, arguments):
        return {"together": together} if name == "finish_together" else arguments

    federation.between = spoil
    with pytest.raises(UserError, match="the names of the release are not those of this roster"):
        federation.release()
    assert not list((federation.apart.homes["c0"].path / "ledgers/own").glob("releases/*"))


@pytest.mark.parametrize(
    "message",
    [
        {"arrays": None, "scalars": {}},
        {"arrays": {"places": [1, 2]}, "scalars": {}},
        {"arrays": {"places": np.zeros(2)}, "scalars": {}},
        {"arrays": {}, "scalars": {"step": 1.5}},
        {"arrays": {}, "scalars": {"step": True}},
        {"arrays": {}, "scalars": "step"},
        {"arrays": {"places": np.array([object()])}, "scalars": {}},
    ],
)
def test_garbage_is_refused_on_either_side(federation, message):
    ready(federation)
    federation.call("begin_together", "c0", release="a release")
    refused = federation.call("step_together", "c0", number=0, **message)
    assert refused == {"refused": "the message is none of a secure sum"}
    params = config.load()

    def ask(name, arguments):
        if name != "step_together":
            return {client: {"name": "a"} for client in arguments}
        return dict.fromkeys(arguments, message)

    with pytest.raises(UserError, match=r"no sum: 0 of 3 .* the message is none of a secure sum"):
        leading.release(RUN.planned(params), RUN.names, joint_run.roster_of(params), ask)


def said_by(federation: Federation, caplog, client: str = "c0") -> str:
    """Returns what a client's own log says of a release that it does not make."""
    federation.start()
    answer = federation.call("ready_together", client, names=RUN.names)
    assert answer == {"refused": rounds.NOT_ALLOWED}
    return caplog.text


def test_a_key_that_is_not_the_rosters_is_refused(federation, caplog):
    key = federation.apart.homes["c0"].path / "ledgers/signing_keys/c0.key"
    shutil.copy(federation.apart.homes["c1"].path / "ledgers/signing_keys/c1.key", key)
    assert "The roster has another key for c0 than" in said_by(federation, caplog)
    os.remove(key)
    assert "`python -m pipelines.privacy.secure_sums c0` makes it" in said_by(federation, caplog)
    key.write_text("no key")
    assert "holds no private key of Ed25519" in said_by(federation, caplog)


@pytest.mark.parametrize(
    "change",
    [
        lambda params: params["privacy"].update(noise="seeded_for_tests"),
        lambda params: params["clients"]["c0"].update(epsilon=float("inf")),
    ],
)
def test_a_release_without_a_guarantee_is_made_with_nobody(federation, caplog, change):
    federation.apart.homes["c0"].edit(change)
    assert "would have no formal guarantee" in said_by(federation, caplog)
    assert federation.charged()["c0"] == 0


def test_a_client_whose_own_file_says_no_is_in_no_release(federation, caplog):
    federation.apart.homes["c0"].edit(lambda params: params["federation"].update(mode="local"))
    assert "must be 'remote'" in said_by(federation, caplog)
    federation.apart.homes["c0"].edit(
        lambda params: (
            params["federation"].update(mode="remote"),
            params["synthesis"].update(generators=["dp_moments"]),
        )
    )
    assert "know no joint generator 'joint_moments'" in said_by(federation, caplog)


@pytest.mark.parametrize(
    ("change", "different"),
    [
        (lambda params: params["clients"]["c0"].update(epsilon=2.0), {"budget"}),
        (lambda params: params["privacy"].update(delta=1e-6), {"budget"}),
        (lambda params: params["privacy"].update(trust="none"), {"trust"}),
        (lambda params: params["federation"]["roster"].update(c1="0" * 63 + "1"), {"roster"}),
        (lambda params: params["privacy"].update(trust="t_of_k"), set()),
        (
            lambda params: params["profiles"]["own"]["synthesis"].update(
                joint_moments={"count_weight": 0.9}
            ),
            {"settings"},
        ),
        (lambda params: params.update(seed=99), set()),
    ],
)
def test_what_all_sides_must_have_alike_is_named(federation, change, different):
    with federation.home("c0") as params:
        before = RUN.terms(params)
    assert before == RUN.terms(config.load())
    federation.apart.homes["c0"].edit(change)
    with federation.home("c0") as params:
        after = RUN.terms(params)
    assert {name for name in before if before[name] != after[name]} == different


def test_clients_of_different_budgets_make_no_release_together(federation):
    federation.apart.server.edit(lambda params: params["clients"]["c1"].update(epsilon=1.0))
    with pytest.raises(UserError, match="ask for one epsilon and delta, and c2 and c1 do not"):
        RUN.terms(config.load())


def test_the_roster_says_who_releases_together_whoever_is_on_this_machine(federation):
    with federation.home("c0") as params:
        assert joint_release.groups(params) == [CLIENTS]


def test_the_guard_asks_the_ledger_that_is_here(federation):
    federation.release()
    federation.export("c0")
    with federation.home("c0") as params:
        place = paths.synthetic("own", "c0", GENERATOR)
        assert not problems(params, place)
        card = read_json(place / "card.json")
        forged = {"release": "f" * 32, "together": {**card["together"], "c0": "f" * 32}}
        write_json(place / "card.json", {**card, **forged})
        assert any(
            "names a release that is not entered" in told for told in problems(params, place)
        )


def problems(params: config.Params, place) -> list[str]:
    card = read_json(place / "card.json")
    return list(provenance._held_against_the_ledgers(params, str(place), card))
