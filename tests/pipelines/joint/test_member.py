"""Tests what a client refuses in a joint release, and when its ledger is charged."""

import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from apart import CLIENTS
from joint_federation import GARBAGE, RUN, Federation

from pipelines import config, releases
from pipelines.errors import UserError
from pipelines.federation.network.flare import client as rounds
from pipelines.joint import coordinator
from pipelines.privacy.ledger import LedgerError


def ready(federation: Federation, client: str = "c0") -> None:
    federation.start()
    assert federation.call("ready_together", client, names=RUN.names) == {}


def test_a_client_answers_nothing_before_its_ledger_has_entered_the_release(federation):
    ready(federation)
    for name, arguments in (
        ("step_together", {"number": 0, "arrays": {}, "scalars": {"step": 1}}),
        ("take_together", {"number": 0, "total": np.zeros((3, 4), np.int64), "summands": 3}),
        ("sign_together", {"together": dict.fromkeys(CLIENTS, "a")}),
        ("finish_together", {"signatures": dict.fromkeys(CLIENTS, "a" * 128)}),
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


def takes(**changes):
    """Returns a server's way to tell c1 something else where it takes a total."""

    def spoil(name, client, arguments):
        spoiled = (name, client) == ("take_together", "c1")
        return {**arguments, **changes} if spoiled else arguments

    return spoil


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
    federation.between = takes(total=total)
    with pytest.raises(UserError, match=r"c1 was lost \(take_together\): a total must be int64"):
        federation.release()
    assert not list((federation.apart.homes["c1"].path / "ledgers/own").glob("releases/*"))


@pytest.mark.parametrize("summands", [0, 2, 4, 3.0, True, None, "3"])
def test_a_number_of_summands_that_cannot_be_is_refused(federation, summands):
    federation.between = takes(summands=summands)
    with pytest.raises(UserError, match=r"c1 was lost .*so many clients cannot be in a sum"):
        federation.release()


@pytest.mark.parametrize(
    "together",
    [
        {},
        {"c0": "a" * 32},
        dict.fromkeys(CLIENTS, "a" * 32),
        ["c0", "c1", "c2"],
    ],
)
def test_names_that_are_not_the_rosters_are_refused_and_nothing_is_stored(federation, together):
    def spoil(name, client, arguments):
        return {"together": together} if name == "sign_together" else arguments

    federation.between = spoil
    with pytest.raises(UserError, match="the names of the release are not those of this roster"):
        federation.release()
    assert not list((federation.apart.homes["c0"].path / "ledgers/own").glob("releases/*"))


@pytest.mark.parametrize(
    "forged", [3, "a", "A" * 32, "| **forged** | <b>row</b> |".ljust(32), None]
)
def test_a_partner_writes_nothing_on_a_client_s_card_but_a_name(federation, forged):
    def spoil(name, client, arguments):
        if name != "sign_together":
            return arguments
        return {"together": {**arguments["together"], "c2": forged}}

    federation.between = spoil
    with pytest.raises(UserError, match="the name of the release in the ledger of c2 is none"):
        federation.release()
    assert not list((federation.apart.homes["c0"].path / "ledgers/own").glob("releases/*"))


@pytest.mark.parametrize(
    "signatures",
    [
        {},
        {"c0": "a" * 128},
        ["c0", "c1", "c2"],
        dict.fromkeys(CLIENTS, "a" * 128),
        dict.fromkeys(CLIENTS, "a"),
        dict.fromkeys(CLIENTS),
        dict.fromkeys((*CLIENTS, "c9"), "a" * 128),
    ],
)
def test_nothing_is_stored_without_the_signature_of_every_partner(federation, signatures):
    def spoil(name, client, arguments):
        return {"signatures": signatures} if name == "finish_together" else arguments

    federation.between = spoil
    with pytest.raises(UserError, match=r"was lost \(finish_together\): .*sign"):
        federation.release()
    assert not list((federation.apart.homes["c0"].path / "ledgers/own").glob("releases/*"))


def tells_another_total(number: int):
    """Returns a server's way to tell c1 another total of one sum."""

    def other(name, client, arguments):
        told = (name, client) == ("take_together", "c1") and arguments["number"] == number
        return {**arguments, "total": arguments["total"] + 1} if told else arguments

    return other


def test_a_server_that_tells_a_client_another_total_gets_no_further_sum(federation):
    federation.between = tells_another_total(0)
    with pytest.raises(UserError, match=r"c1 was lost \(step_together\): The message is of other"):
        federation.release()


def test_a_server_that_tells_a_client_another_last_total_is_found_out_by_all(federation):
    federation.between = tells_another_total(1)
    believes_all = SimpleNamespace(is_signed=lambda *given: True)
    federation.monkeypatch.setattr(coordinator, "Seal", lambda *given: believes_all)
    with pytest.raises(UserError, match=r"finish_together\): c1 has signed another release"):
        federation.release()
    for home in federation.apart.homes.values():
        assert not list((home.path / "ledgers/own").glob("releases/*"))


def test_a_client_signs_one_set_of_names(federation):
    signed = {}

    def keep(name, client, arguments):
        if name == "finish_together" and client == "c0":
            names = {**signed["together"], "c2": "0" * 32}
            signed["again"] = federation.call("sign_together", "c0", together=names)
        if name == "sign_together":
            signed.update(arguments)
        return arguments

    federation.between = keep
    federation.release()
    assert signed["again"] == {"refused": "this client has signed other names"}


def test_no_total_is_taken_of_a_sum_to_which_a_client_gave_nothing(federation):
    ready(federation)
    federation.call("begin_together", "c0", release="a release")
    federation.call("step_together", "c0", number=0, arrays={}, scalars={"step": 9})
    planned = RUN.planned(config.load())
    total = np.zeros(planned.plan.courses[0].shapes[0], np.int64)
    answer = federation.call("take_together", "c0", number=0, total=total, summands=3)
    assert answer == {"refused": "this total is of no sum that this client has made"}


def test_a_job_that_is_a_joint_release_is_no_run_of_a_method(federation):
    ready(federation)
    run = {"dataset": "own", "method": "dpsgd_head", "generator": ""}
    answer = federation.call("begin", "c0", names=run, pool={})
    assert answer == {"refused": "this job is a joint release: a run needs a job of its own"}
    assert federation.charged()["c0"] == 0


def test_a_store_that_could_not_take_the_result_stops_it_before_anyone_pays(
    federation, caplog, monkeypatch
):
    def no_place(store):
        raise LedgerError(f"{store} lies on another file system")

    monkeypatch.setattr(releases, "check_place", no_place)
    assert "lies on another file system" in said_by(federation, caplog)
    assert federation.charged()["c0"] == 0


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


@pytest.mark.parametrize("message", GARBAGE)
def test_garbage_of_the_server_is_refused(federation, message):
    ready(federation)
    federation.call("begin_together", "c0", release="a release")
    refused = federation.call("step_together", "c0", number=0, **message)
    assert refused == {"refused": "the message is none of a secure sum"}
