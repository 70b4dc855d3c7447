"""Tests where a client finds what it released with others on other machines."""

import shutil

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from apart import CLIENTS, GENERATOR

from pipelines import config, paths, releases
from pipelines.datasets import shards
from pipelines.errors import UserError
from pipelines.files import read_json, write_json
from pipelines.guard import provenance
from stages import joint_release as stage
from stages import train_generator


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
    assert "`python -m pipelines.joint --dataset own --generator joint_moments`" in str(
        refusal.value
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda params: params["clients"]["c0"].update(epsilon=2.0),
        lambda params: params["privacy"].update(trust="none"),
        lambda params: params.update(seed=17),
        # another partner, of as many
        lambda params: params["federation"]["roster"].update(c1="0" * 63 + "1"),
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


NO_NAMES = "names no releases of clients"
NO_SEAL = "holds no seal that clients have signed"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"together": ["c0"]}, NO_NAMES),
        ({"sealed": 3}, NO_SEAL),
        ({"sealed": {"x": 1}}, NO_SEAL),
        ({"sealed": [1]}, NO_SEAL),
        ({"sealed": {"release": "a", "totals": "b"}}, NO_SEAL),
    ],
)
def test_damaged_names_and_seals_are_told_before_anything_is_exported(federation, damage, said):
    federation.release()
    with federation.home("c0") as params:
        stage.run(params, "own")
        file = paths.joint("own") / GENERATOR / "c0/release.json"
        write_json(file, {**read_json(file), **damage})
        with pytest.raises(UserError, match=said):
            train_generator.run(params, "own", "c0", GENERATOR)


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


def test_the_guard_knows_no_export_of_a_client_whose_ledger_is_elsewhere(federation):
    federation.release()
    federation.export("c0")
    with federation.home("c0") as params:
        own = paths.synthetic("own", "c0", GENERATOR)
        other = paths.synthetic("own", "c1", GENERATOR)
        shutil.copytree(own, other)
        card = read_json(other / "card.json")
        for forged in ({}, {"together": {}}):
            write_json(other / "card.json", {**card, **forged})
            (told,) = [line for line in problems(params, other) if "of c1" in line]
            assert "names a release that is not entered as made" in told


def test_the_guard_asks_for_the_signatures_of_those_whose_ledgers_are_elsewhere(federation):
    federation.release()
    federation.export("c0")
    with federation.home("c0") as params:
        place = paths.synthetic("own", "c0", GENERATOR)
        card = read_json(place / "card.json")
        partners = {client: "0" * 32 for client in card["together"] if client != "c0"}
        forged = {**card, "together": {**card["together"], **partners}}
        write_json(place / "card.json", forged)
        (told,) = problems(params, place)
        assert "must have signed, and its card has the signatures of 0 (nobody)" in told
        unsealed = {name: value for name, value in card.items() if name != "sealed"}
        write_json(place / "card.json", unsealed)
        (told,) = problems(params, place)
        assert "lacks 'sealed': no clients have signed its release" in told


def problems(params: config.Params, place) -> list[str]:
    card = read_json(place / "card.json")
    return list(provenance._held_against_the_ledgers(params, str(place), card))
