"""Tests whole joint releases between machines, without a network."""

import contextlib
from functools import partial

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from apart import CLIENTS, EPSILON, GENERATOR
from joint_federation import GARBAGE, RUN

from pipelines import config, paths
from pipelines.config.generators import JOINT
from pipelines.datasets import shards
from pipelines.errors import UserError
from pipelines.federation.network.client import LOCAL
from pipelines.files import read_arrays
from pipelines.joint import coordinator
from pipelines.joint.joint_run import JointRun
from pipelines.privacy.secure_sums.messages import Step
from pipelines.seal import roster_of, signed_by
from stages import joint_release as stage


def state(project, client: str, generator: str = GENERATOR) -> dict[str, np.ndarray]:
    place = project.path / paths.joint("own") / generator / client
    return read_arrays(place / "generator.safetensors")


def test_each_client_is_charged_once_and_samples_its_own_set_of_one_generator(federation):
    outcome = federation.release()
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
        assert list(card["together"]) == list(CLIENTS)
        (entry,) = [line for line in federation.entered(client) if line["event"] == "open"]
        assert entry["parameters"]["client"] == client
    assert len(set(cards["c0"]["together"].values())) == 3
    for name, value in states[0].items():
        assert all(np.array_equal(other[name], value) for other in states[1:])
    # the masked vectors alone have 8 bytes for each released number
    numbers = entry["parameters"]["released_numbers"]
    assert outcome.traffic.up > 3 * 8 * numbers and outcome.traffic.down > 3 * 8 * numbers
    assert outcome.gone == {}
    roster = roster_of(config.load())
    for card in cards.values():
        assert card["sealed"] == cards["c0"]["sealed"]
        assert signed_by(card, roster) == CLIENTS


def _few_sums(generator: str, params: dict) -> None:
    """Has the clients release by this generator, in few sums."""
    params["synthesis"]["generators"] = [generator]
    params["synthesis"]["joint_datalens"].update(steps=3, teachers=12)
    schedule = {"from_signal": 0, "steps": 2, "learning_rate": 4.0}
    params["synthesis"]["joint_head"]["schedules"] = [schedule]


@pytest.mark.parametrize("generator", JOINT)
def test_with_noise_for_tests_it_is_the_release_of_one_process_to_the_last_bit(
    federation, generator
):
    federation.apart.edit(partial(_few_sums, generator))
    federation.monkeypatch.setenv(LOCAL, "1")
    federation.apart.edit(lambda params: params["privacy"].update(noise="seeded_for_tests"))
    federation.apart.whole.edit(lambda params: params["federation"].update(engine="inprocess"))
    federation.release(JointRun("own", generator))
    with federation.home("c1") as params:
        stage.run(params, "own")
    with contextlib.chdir(federation.apart.whole.path):
        stage.run(config.load(), "own")
    together = state(federation.apart.whole, "c1", generator)
    for name, value in state(federation.apart.homes["c1"], "c1", generator).items():
        np.testing.assert_array_equal(value, together[name])


def test_the_total_of_a_sum_is_that_of_all_records_without_noise(federation):
    """The server and every client see the sums over everybody's records, and nothing else of them."""
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
    released = []
    with contextlib.ExitStack() as stack:
        parts = []
        for shard in records:
            part = planned.module.contribution(planned.member("c0", shard), planned.plan)
            parts.append(stack.enter_context(part))
        for total in totals:
            assert np.array_equal(total, sum(part(released) for part in parts))
            released.append(total / planned.plan.scale)
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


@pytest.mark.parametrize("change", [{"clip": 1.0}, {"centre": 0.9}])
def test_clients_of_other_settings_make_no_sum_though_the_server_compares_nothing(
    federation, change
):
    """A dishonest server may not ask who has which settings. The first sum's terms then differ."""

    def other(params: dict) -> None:
        blocks = params["profiles"]["own"]["synthesis"]
        blocks["joint_moments"] = {**blocks.get("joint_moments", {}), **change}

    federation.apart.homes["c1"].edit(other)
    with pytest.raises(
        UserError, match=r"was lost \(step_together\): The message is of other terms"
    ):
        federation.release()


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


def test_a_server_that_tells_clients_different_names_gets_no_sum(federation):
    def two_names(name, client, arguments):
        if name == "begin_together" and client == "c2":
            return {"release": "another release"}
        return arguments

    federation.between = two_names
    with pytest.raises(UserError, match=r"c2 was lost .* The message is of other terms"):
        federation.release()


@pytest.mark.parametrize(
    "call", ["begin_together", "take_together", "sign_together", "finish_together"]
)
def test_a_client_that_is_gone_is_told_in_a_sentence(federation, call):
    federation.between = lambda name, client, given: (
        None if (name, client) == (call, "c1") else given
    )
    with pytest.raises(UserError, match=rf"needs all its clients, and c1 left \({call}\)"):
        federation.release()


@pytest.mark.parametrize("name", ["a", None, "| a row |", 3])
def test_a_client_whose_name_of_the_release_is_none_ends_it_before_any_sum(federation, name):
    params = config.load()
    told = []
    answer = {"name": name}

    def ask(call, arguments):
        told.append(call)
        return dict.fromkeys(arguments, answer)

    with pytest.raises(UserError, match=r"needs all its clients, and c0 left \(begin_together\)"):
        coordinator.release(RUN, params, ask)
    assert told == ["ready_together", "begin_together"]


@pytest.mark.parametrize("message", GARBAGE)
def test_garbage_of_clients_ends_the_release_in_a_sentence(federation, message):
    params = config.load()

    def ask(name, arguments):
        answer = message if name == "step_together" else {"name": "a" * 32}
        return dict.fromkeys(arguments, answer)

    with pytest.raises(UserError, match=r"no sum: 0 of 3 .* the message is none of a secure sum"):
        coordinator.release(RUN, params, ask)
