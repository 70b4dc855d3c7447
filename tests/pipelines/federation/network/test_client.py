"""Tests a client's side of a run, from a folder with its own files alone."""

import json
import shutil
from pathlib import Path

import numpy as np
import parameter_files
import pytest
from project import Project

from pipelines import config
from pipelines.datasets import shards
from pipelines.errors import UserError
from pipelines.federation.core.messages import Payload
from pipelines.federation.network.client import LOCAL, exported, gate
from pipelines.federation.network.gate import SPENT, Refused, check_all_scalars, check_arrays
from pipelines.federation.network.server import bounds, shares_sets
from pipelines.federation.run_spec import RunSpec
from pipelines.privacy.ledger import Ledger

SYNTHETIC, NOISY_RUN = RunSpec("own", "fedavg", "dp_moments"), RunSpec("own", "dpsgd")
HEAD_RUN = RunSpec("own", "dpsgd_head")


@pytest.fixture(scope="module")
def everyone(_checkout, tmp_path_factory) -> Path:
    """Makes a project where c0 has exported its set."""
    project = Project(tmp_path_factory.mktemp("exported") / "fedlens")
    shutil.copytree(_checkout, project.path)
    project.export(["c0"], SYNTHETIC.generator)
    return project.path


@pytest.fixture
def home(everyone, tmp_path, monkeypatch) -> Project:
    """Makes c0's folder: its exported set, its train part and its ledger, and nothing of c1's."""
    for name in ("data/synthetic/own/c0", "data/private/own/clients/c0"):
        shutil.copytree(everyone / name, tmp_path / name)
    parameter_files.copy_files(everyone, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDLENS_LEDGERS", raising=False)
    monkeypatch.setenv(LOCAL, "1")  # as a stage does that starts its own clients
    return Project(tmp_path)


def opened(client: str = "c0") -> list[dict]:
    entries = Ledger(Path("ledgers/own") / f"{client}.jsonl", delta=1e-5).entries()
    return [entry for entry in entries if entry["event"] == "open"]


def first(served) -> Payload:
    return Payload(
        {name: np.zeros_like(array) for name, array in served.template.items()}, {"round": 1}
    )


def test_a_synthetic_run_needs_the_exported_set_alone(home):
    shutil.rmtree("data/private")
    answer = gate(config.load(), SYNTHETIC, "c0", {}).answer(
        first(gate(config.load(), SYNTHETIC, "c0", {}))
    )
    assert answer.scalars["images"] == config.load().profiles["own"].images
    assert not opened()


SYNTHETIC_METHODS = (
    "pppfl",
    "fedavg",
    "fedprox",
    "fednova",
    "scaffold",
    "reptile",
    "sda_fl",
    "fedmeta",
)


@pytest.mark.parametrize("method", SYNTHETIC_METHODS)
def test_the_server_takes_what_an_honest_client_tells(home, method):
    beside = [name for name in ("random_init", method) if name != "pppfl"]
    home.edit(lambda params: params["baselines"].update(algorithms=beside))
    params, run = config.load(), RunSpec("own", method, "dp_moments")
    own = exported(run, "c0")["c0"]
    pool = {"c0": {"images": own.images, "labels": own.labels}} if shares_sets(run) else {}
    served = gate(params, run, "c0", pool)
    answer = served.answer(first(served))
    check_arrays(answer.arrays, served.template)
    check_all_scalars(answer.scalars, bounds(params, run))


@pytest.mark.parametrize("method", ["dpsgd", "nbafl", "adap", "agn", "ali"])
def test_and_an_honest_noisy_one(home, method):
    home.edit(lambda params: params["dp_baselines"].update(algorithms=[method]))
    params, run = config.load(), RunSpec("own", method)
    served = gate(params, run, "c0", {})
    asked = {} if method == "nbafl" else {"noise_factor": 1.0, "local_steps": 2}
    answer = served.answer(Payload(first(served).arrays, {"round": 1, **asked}))
    check_arrays(answer.arrays, served.template)
    check_all_scalars(answer.scalars, bounds(params, run))
    check_all_scalars(served.end(), SPENT)


def test_anothers_set_is_not_there(home):
    with pytest.raises(UserError, match=r"c1.* is missing"):
        gate(config.load(), SYNTHETIC, "c1", {})


def test_a_noisy_run_is_in_the_ledger_before_the_first_answer_and_again_at_every_beginning(home):
    params = config.load()
    for times in (1, 2):
        served = gate(params, NOISY_RUN, "c0", {})
        assert [entry["mechanism"] for entry in opened()] == ["dpsgd"] * times
        served.answer(
            Payload(first(served).arrays, {"round": 1, "noise_factor": 1.0, "local_steps": 2})
        )
    ledger = Ledger(Path("ledgers/own/c0.jsonl"), delta=1e-5)
    one, two = (entry["statement"]["epsilon"] for entry in opened())
    assert one == two and ledger.total_epsilon() > one
    assert served.end()["steps"] == 2


def test_an_organisations_own_client_serves_a_noisy_head_and_enters_it_first(home, monkeypatch):
    """Its sums are integers, so that a server elsewhere reads nothing in their rounding."""
    monkeypatch.delenv(LOCAL)
    served = gate(config.load(), HEAD_RUN, "c0", {})
    assert [entry["mechanism"] for entry in opened()] == ["dpsgd_head"]
    assert opened()[0]["statement"]["guarantee"] == "formal"
    ask = first(served)
    check_arrays(served.answer(ask).arrays, served.template)
    served.answer(Payload(ask.arrays, {"round": 2, "planned_steps": 1}))
    spent = served.end()
    assert spent["steps"] == 1
    assert spent["epsilon_spent"] == pytest.approx(config.load().clients["c0"].epsilon)


def test_an_organisations_own_client_serves_no_head_with_noise_for_tests(home, monkeypatch):
    home.edit(lambda params: params["privacy"].update(noise="seeded_for_tests"))
    monkeypatch.delenv(LOCAL)
    with pytest.raises(UserError, match="Noise for tests promises nothing"):
        gate(config.load(), HEAD_RUN, "c0", {})
    assert not opened()


def test_an_organisations_own_client_serves_no_head_without_noise(home, monkeypatch):
    home.edit(lambda params: params["clients"]["c0"].update(epsilon=float("inf")))
    monkeypatch.delenv(LOCAL)
    with pytest.raises(UserError, match=r"clients\.c0 is infinite, which promises nothing"):
        gate(config.load(), HEAD_RUN, "c0", {})
    assert not opened()
    monkeypatch.setenv(LOCAL, "1")
    gate(config.load(), HEAD_RUN, "c0", {})


@pytest.mark.parametrize("run", [NOISY_RUN, HEAD_RUN], ids=["dpsgd", "dpsgd_head"])
def test_a_record_that_does_not_fit_is_told_before_the_ledger_and_no_server_learns_it(home, run):
    """A later failure would tell the server that some record has the label."""
    labels = shards.read("own", "c0", "train").labels
    home.edit(lambda params: params["profiles"]["own"].update(classes=int(labels.max())))
    with pytest.raises(UserError, match="label"):
        gate(config.load(), run, "c0", {})
    assert not opened()


def test_an_organisations_own_client_serves_no_sums_of_floats(home, monkeypatch):
    monkeypatch.delenv(LOCAL)
    with pytest.raises(UserError, match=r"in federation.mode 'local' alone"):
        gate(config.load(), NOISY_RUN, "c0", {})
    assert not opened()


def test_an_organisations_own_client_serves_no_set_without_a_guarantee(home, monkeypatch):
    monkeypatch.delenv(LOCAL)
    params, card = config.load(), Path("data/synthetic/own/c0/dp_moments/card.json")
    content = json.loads(card.read_text())
    asked = [lambda: exported(SYNTHETIC, "c0"), lambda: gate(params, SYNTHETIC, "c0", {})]
    content["privacy"]["guarantee"] = "none"
    card.write_text(json.dumps(content))
    for ask in asked:
        with pytest.raises(
            UserError, match="has no formal guarantee: the set is served to nobody else"
        ):
            ask()
    content["privacy"]["guarantee"] = "formal"
    card.write_text(json.dumps(content))
    for ask in asked:
        ask()


def test_a_lifetime_cap_refuses_the_run_and_spends_nothing(home):
    home.edit(lambda params: params["clients"]["c0"].update(lifetime_epsilon=1.0))
    with pytest.raises(UserError, match="Nothing was spent"):
        gate(config.load(), NOISY_RUN, "c0", {})
    assert not opened()


def test_a_server_cannot_ask_for_more_steps_than_the_budget_buys(home):
    """It asks for a million a round.

    The account gives what was planned, and then the client has left.
    """
    params = config.load()
    served, planned = gate(params, NOISY_RUN, "c0", {}), params.training("own", "dpsgd")
    asked = {"noise_factor": 1.0, "local_steps": 10**6}
    answers = [
        served.answer(Payload(first(served).arrays, {"round": number, **asked}))
        for number in (1, 2)
    ]
    assert (
        answers[0].scalars["steps"] == planned.rounds * planned.local_steps and answers[1] is None
    )


def test_a_warm_start_is_not_served(home):
    home.edit(lambda params: params["dp_baselines"].update(algorithms=["dpsgd", "dpsgd_warm"]))
    with pytest.raises(UserError, match="in one process only"):
        gate(config.load(), RunSpec("own", "dpsgd_warm"), "c0", {})


@pytest.mark.parametrize("wrong", ["client", "pixels", "number", "labels", "nothing"])
def test_a_pool_that_is_none_is_refused(home, wrong):
    home.edit(lambda params: params["baselines"]["algorithms"].append("sda_fl"))
    params, run = config.load(), RunSpec("own", "sda_fl", "dp_moments")
    images, labels = np.zeros((60, 8, 8, 1), np.uint8), np.zeros(60, np.int64)
    pool = {"c0": {"images": images, "labels": labels}}
    gate(params, run, "c0", pool)
    pool |= {
        "client": {"cx": pool["c0"]},
        "pixels": {"c0": {"images": images.astype(np.float32), "labels": labels}},
        "number": {"c0": {"images": images[:7], "labels": labels[:7]}},
        "labels": {"c0": {"images": images, "labels": labels[:7]}},
        "nothing": {"c0": {}},
    }[wrong]
    with pytest.raises(Refused, match=r"must be uint8 images|is no client of this run"):
        gate(params, run, "c0", pool)
