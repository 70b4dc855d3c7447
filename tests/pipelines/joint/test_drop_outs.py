"""Tests joint releases between four machines, of whose clients one may drop out."""

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

import deviations
from joint_federation import RUN

from pipelines import config, paths
from pipelines.datasets import shards
from pipelines.errors import UserError
from pipelines.federation.network.client import LOCAL
from pipelines.files import read_arrays, read_json
from pipelines.guard import provenance
from pipelines.privacy.secure_sums.messages import Step
from pipelines.seal import roster_of, signed_by

REST = ("c0", "c2", "c3")
CALLS = ("begin_together", "take_together", "sign_together", "finish_together")


def stored(federation, client: str) -> dict[str, np.ndarray]:
    place = federation.apart.homes[client].path / paths.joint("own") / RUN.generator / client
    return read_arrays(place / "generator.safetensors")


def has_nothing(federation, client: str) -> bool:
    return not list((federation.apart.homes[client].path / "ledgers/own").glob("releases/*"))


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("step", list(Step))
def test_the_others_have_one_generator_whenever_a_client_falls_silent(four, step, number):
    def silent(name, client, arguments):
        now = (arguments.get("number"), arguments.get("scalars", {}).get("step"))
        return None if client == "c1" and now == (number, step) else arguments

    four.between = silent
    outcome = four.release()
    assert outcome.gone == {"c1": "step_together"}
    # what was sent cannot be taken back, so the one that left has paid, too
    assert four.charged() == dict.fromkeys(four.apart.homes, 1)
    assert has_nothing(four, "c1")
    cards = {client: four.export(client) for client in REST}
    roster = roster_of(config.load())
    for client, card in cards.items():
        assert signed_by(card, roster) == REST
        assert list(card["together"]) == ["c0", "c1", "c2", "c3"]
        assert card["privacy"]["details"]["may_drop"] == 1
        assert card["privacy"]["details"]["honest_shares"] == 2
        for name, value in stored(four, client).items():
            np.testing.assert_array_equal(value, stored(four, "c0")[name])


def test_sums_of_fewer_clients_are_taken_as_those_of_all(four):
    """Without noise the number of records by class is that of all, though one left before it."""
    four.monkeypatch.setenv(LOCAL, "1")
    four.apart.edit(_without_noise)
    four.between = lambda name, client, given: (
        None if (name, client) == ("begin_together", "c1") else given
    )
    four.release()
    four.export("c0")
    counts = []
    for client in REST:
        with four.home(client) as params:
            counts.append(len(shards.read("own", client, "train", params.profiles["own"])))
    assert stored(four, "c0")["count"] == pytest.approx(sum(counts) * 4 / 3)


def _without_noise(params: dict) -> None:
    for client in params["clients"].values():
        client["epsilon"] = float("inf")


@pytest.mark.parametrize("call", CALLS)
def test_a_client_that_is_gone_between_two_sums_is_left_behind(four, call):
    four.between = lambda name, client, given: None if (name, client) == (call, "c1") else given
    outcome = four.release()
    assert outcome.gone == {"c1": call}
    assert has_nothing(four, "c1")
    assert not any(has_nothing(four, client) for client in REST)


@pytest.mark.parametrize("call", CALLS)
def test_the_guard_lets_the_exports_of_those_who_are_left_out(four, call):
    four.between = lambda name, client, given: None if (name, client) == (call, "c1") else given
    four.release()
    four.export("c0")
    with four.home("c0") as params:
        place = paths.synthetic("own", "c0", RUN.generator)
        card = read_json(place / "card.json")
        assert list(provenance._held_against_the_ledgers(params, str(place), card)) == []


@pytest.mark.parametrize("name", ["a", None, 3])
def test_a_client_whose_name_of_the_release_is_none_is_left_behind(four, monkeypatch, name):
    call = four.call

    def spoiled(method, client, **arguments):
        true = call(method, client, **arguments)
        return {"name": name} if (method, client) == ("begin_together", "c1") else true

    monkeypatch.setattr(four, "call", spoiled)
    assert four.release().gone == {"c1": "begin_together"}
    assert not any(has_nothing(four, client) for client in REST)


def test_the_estimates_know_the_noise_of_the_sums_that_a_client_left(four, monkeypatch):
    """A sum of three of four clients has three shares, and is taken 4 / 3 times."""
    told = deviations.told(monkeypatch)

    def silent(name, client, arguments):
        now = (name, arguments.get("number"))
        return None if client == "c1" and now == ("step_together", 1) else arguments

    four.between = silent
    four.release()
    shares = RUN.planned(config.load()).plan.shares
    owed = (shares.share(0) * 2, shares.share(1) * 4 / np.sqrt(3))
    assert len(told) == 3 and all(sigmas == pytest.approx(owed) for sigmas in told)


def test_a_client_that_refuses_is_left_behind_with_its_reason(four):
    def spoil(name, client, arguments):
        spoiled = name == "take_together" and client == "c1"
        return {**arguments, "total": None} if spoiled else arguments

    four.between = spoil
    outcome = four.release()
    assert outcome.gone == {"c1": "take_together: a total must be int64, " + shape_of_first()}


def shape_of_first() -> str:
    return str(RUN.planned(config.load()).plan.courses[0].shapes[0])


def test_a_client_that_seals_garbage_is_named_though_the_others_refuse(four, monkeypatch):
    call = four.call

    def spoiled(name, client, **arguments):
        true = call(name, client, **arguments)
        if client == "c1" and "sealed" in true.get("arrays", {}):
            noise = np.random.default_rng(1).bytes(true["arrays"]["sealed"].nbytes)
            sealed = np.frombuffer(noise, np.uint8).reshape(true["arrays"]["sealed"].shape)
            return {**true, "arrays": {"sealed": sealed}}
        return true

    monkeypatch.setattr(four, "call", spoiled)
    with pytest.raises(UserError, match=r"'c0', step 3: .*The shares of 'c1' for 'c0' do not open"):
        four.release()


@pytest.mark.parametrize("answer", [{}, {"signature": 3}, {"signature": "a" * 128}])
def test_a_client_that_signs_nothing_is_left_behind(four, monkeypatch, answer):
    call = four.call

    def spoiled(name, client, **arguments):
        true = call(name, client, **arguments)
        return answer if (name, client) == ("sign_together", "c1") else true

    monkeypatch.setattr(four, "call", spoiled)
    assert four.release().gone == {"c1": "sign_together"}
    assert has_nothing(four, "c1") and not any(has_nothing(four, client) for client in REST)


def test_a_client_that_is_gone_is_asked_nothing_more(four):
    asked = []

    def silent(name, client, arguments):
        if client == "c1":
            asked.append(name)
        return None if (client, name) == ("c1", "take_together") else arguments

    four.between = silent
    four.release()
    assert asked == ["ready_together", "begin_together", *["step_together"] * 5, "take_together"]


def test_two_that_drop_out_end_it_with_both_reasons(four):
    gone = {"c1": "begin_together", "c3": "take_together"}
    four.between = lambda name, client, given: None if gone.get(client) == name else given
    with pytest.raises(UserError) as error:
        four.release()
    assert str(error.value) == (
        "A joint release needs 3 of its 4 clients, and c1 left (begin_together), c3 left "
        "(take_together)."
    )


def test_nobody_may_drop_out_before_all_ledgers_were_asked(four):
    four.between = lambda name, client, given: None if client == "c1" else given
    with pytest.raises(UserError, match=r"needs all its clients, and c1 left \(ready_together\)"):
        four.release()
    assert four.charged() == dict.fromkeys(four.apart.homes, 0)


def test_a_client_that_comes_back_is_refused(four):
    """Another machine's late answer, or a second process, adds nothing to a release."""

    def silent(name, client, arguments):
        return None if (client, name) == ("c1", "take_together") else arguments

    four.between = silent
    four.release()
    late = four.call("sign_together", "c1", together={})
    assert late == {"refused": "a sum is missing"}


def test_more_than_the_trust_allows_may_not_drop_out(four):
    four.apart.edit(lambda params: params["synthesis"]["joint_moments"].update(may_drop=2))
    with pytest.raises(UserError) as error:
        four.release()
    assert str(error.value) == (
        "The 'may_drop' parameter of synthesis.joint_moments must be an integer in [0, 1] where 1 "
        "of 4 clients may collude. Got 2 instead. (settings/generators.yaml)"
    )
