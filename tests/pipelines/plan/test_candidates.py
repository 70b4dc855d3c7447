"""Tests that a release is planned alike with and without what only a statement's reader wants."""

import numpy as np
import pytest
from project import ROOT

from pipelines import config, releases
from pipelines.datasets.labelled_images import Images
from pipelines.federation import noisy_release
from pipelines.federation.noisy_run import NoisyRun
from pipelines.plan import candidates, records
from pipelines.plan.records import Records
from pipelines.synthesis import warm_start
from pipelines.training import public_basis

RECORDS = Images(np.zeros((6, 8, 8, 1), np.uint8), np.arange(6), np.arange(6))


@pytest.fixture(scope="module")
def params():
    """Returns the shipped parameters with one client and two noisy rounds, which plan in no time."""
    params = config.load(ROOT / "params.yaml")
    blocks = {}
    for method in params.dp_baselines.algorithms:
        block = getattr(params.dp_baselines, method)
        if method != "dpsgd_head":
            blocks[method] = block.model_copy(update={"rounds": 2})
    return params.model_copy(
        update={
            "clients": {"c0": params.clients["c0"]},
            "dp_baselines": params.dp_baselines.model_copy(update=blocks),
        }
    )


@pytest.fixture(autouse=True)
def small_basis(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("models.scattering_basis.make.__defaults__", (200, iter))


def test_no_ledger_tells_releases_apart_by_what_is_left_out(params):
    for method in params.dp_baselines.algorithms:
        start = warm_start.joint_start(params, "digits", method)
        run = NoisyRun(params, "digits", method, start)
        task = run.client_task({"c0": RECORDS})
        whole = run.entries(task, RECORDS)["c0"]
        planned = run.entries(task, RECORDS, details=False)["c0"]
        assert planned.fingerprint == whole.fingerprint, method
        assert planned.statement["epsilon"] == whole.statement["epsilon"]
        assert set(planned.statement["details"]) <= set(whole.statement["details"])


def test_what_a_part_costs_is_what_a_ledger_would_enter(params):
    known = Records({"c0": RECORDS}, RECORDS)
    ledgers = {"c0": releases.ledger_of(params, "digits", "c0")}
    with public_basis.storing_nothing():
        for candidate in candidates.all_of(params, "digits", ledgers, known):
            if candidate.is_joint:
                start = warm_start.joint_start(params, "digits", candidate.name)
                run = NoisyRun(params, "digits", candidate.name, start)
                entry = run.entries(run.client_task({"c0": RECORDS}), RECORDS)["c0"]
                part = candidate.parts["c0"]
                assert part.cost == entry.cost
                assert (part.epsilon, part.delta) == (entry.statement["epsilon"], 1e-5)
                assert part.release is None


def test_a_run_over_a_network_is_compared_with_what_was_collected(params):
    network = params.federation.model_copy(update={"engine": "nvflare"})
    over = params.model_copy(update={"federation": network})
    dp = over.dp_baselines.model_copy(update={"algorithms": ["dpsgd"]})
    over = over.model_copy(update={"dp_baselines": dp})
    ledgers = {"c0": releases.ledger_of(over, "digits", "c0")}
    known = Records({"c0": RECORDS}, RECORDS)
    joint = [each for each in candidates.all_of(over, "digits", ledgers, known) if each.is_joint]
    assert joint[0].is_apart
    assert joint[0].parts["c0"].release.data == releases.digest_of_all(
        noisy_release.facts(over, known.train, RECORDS)
    )


def test_a_joint_generator_is_one_release_of_all_clients(params):
    clients = {f"c{place}": params.clients["c0"] for place in range(3)}
    synthesis = params.synthesis.model_copy(update={"generators": ["dp_moments", "joint_moments"]})
    three = params.model_copy(update={"clients": clients, "synthesis": synthesis})
    ledgers = {client: releases.ledger_of(three, "digits", client) for client in clients}
    known = Records(dict.fromkeys(clients, RECORDS), RECORDS)
    first, *others = candidates.all_of(three, "digits", ledgers, known)
    assert (first.name, first.stage) == ("joint_moments", "joint_release@digits")
    assert first.is_joint and not first.is_apart and list(first.parts) == list(clients)
    assert all("put what they know together" in part.trust for part in first.parts.values())
    own = [each.stage for each in others if each.name == "dp_moments"]
    assert own == [f"train_generator@digits-{client}-dp_moments" for client in clients]
    assert all(each.name != "joint_moments" for each in others)


def test_records_that_nobody_read_are_those_of_no_release(params):
    nobodys = records.nobodys(params)
    assert not nobodys.are_known and list(nobodys.train) == ["c0"]
    assert releases.digest(nobodys.train["c0"]) != releases.digest(RECORDS)
