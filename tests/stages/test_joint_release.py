"""Tests the stage that makes a release of all clients together: once, and in every ledger or none."""

import json
from pathlib import Path

import numpy as np
import pytest

from pipelines import config, paths, releases
from pipelines.errors import UserError
from pipelines.files import read_arrays, read_json

CLIENTS = ("c0", "c1", "c2")
GENERATOR = "joint_moments"


def three_clients(params: dict) -> None:
    """Changes the tiny parameters to three clients that release together."""
    params["clients"] = {client: {"epsilon": 3.0} for client in CLIENTS}
    params["partition"].update(clients=list(CLIENTS), small=None)
    params["synthesis"]["generators"] = [GENERATOR]
    params["new_clients"]["held_out"] = []


@pytest.fixture
def together(within):
    within.edit(three_clients)
    within.stage("prepare", "--dataset", "own")
    within.stage("partition", "--dataset", "own")
    return within


def lines(project) -> dict[str, list[dict]]:
    """Returns the lines of every client's ledger; none where there is no ledger."""
    found = {}
    for client in CLIENTS:
        path = project.path / "ledgers/own" / f"{client}.jsonl"
        text = path.read_text() if path.exists() else ""
        found[client] = [json.loads(line) for line in text.splitlines()]
    return found


def released(project) -> dict[str, np.ndarray]:
    folder = project.path / paths.joint("own") / GENERATOR / "c0"
    return read_arrays(folder / "generator.safetensors")


def test_dvc_makes_one_release_and_every_client_s_set_is_sampled_from_it(within):
    within.edit(three_clients)
    ran = within.repro("export_synthetic")
    assert [name for name in ran if name.startswith("joint_release")] == ["joint_release@own"]
    state = released(within)
    sets = []
    for client in CLIENTS:
        folder = within.path / paths.generator("own", client, GENERATOR)
        copied = read_arrays(folder / "generator.safetensors")
        assert all(np.array_equal(copied[name], value) for name, value in state.items())
        export = within.path / paths.synthetic("own", client, GENERATOR)
        card = read_json(export / "card.json")
        assert list(card["together"]) == list(CLIENTS)
        assert card["together"][client] == card["release"]
        assert card["privacy"]["epsilon"] == 3.0
        assert "at most 1 of the 3 clients" in card["privacy"]["statement"]
        assert "### Epsilon by how many clients collude" in (export / "card.md").read_text()
        sets.append(np.load(export / "images.npz")["images"].tobytes())
    assert len(set(sets)) == 3
    for client, entered in lines(within).items():
        assert [line["event"] for line in entered] == ["open", "close"]
        assert entered[0]["parameters"]["client"] == client
        assert entered[0]["mechanism"] == GENERATOR


def test_a_second_run_takes_the_release_from_the_store(together, capsys):
    together.stage("joint_release", "--dataset", "own")
    before = released(together)
    entered = lines(together)
    capsys.readouterr()
    together.stage("joint_release", "--dataset", "own")
    assert "made before: taken from the ledger's store; nothing is spent" in capsys.readouterr().out
    after = released(together)
    assert all(np.array_equal(after[name], value) for name, value in before.items())
    assert lines(together) == entered


def test_a_cap_of_one_client_stops_the_release_before_any_ledger_is_charged(together):
    together.edit(lambda params: params["clients"]["c2"].update(lifetime_epsilon=1.0))
    with pytest.raises(UserError, match="above its lifetime_epsilon of 1"):
        together.stage("joint_release", "--dataset", "own")
    assert lines(together) == {client: [] for client in CLIENTS}
    assert not (together.path / paths.joint("own")).exists()


def test_a_cap_of_one_client_stops_the_groups_before_it_too(together):
    together.edit(
        lambda params: (
            params["clients"].update(c3={"epsilon": 5.0, "lifetime_epsilon": 1.0}),
            params["partition"].update(clients=[*CLIENTS, "c3"]),
        )
    )
    together.stage("partition", "--dataset", "own")
    with pytest.raises(UserError, match="above its lifetime_epsilon of 1"):
        together.stage("joint_release", "--dataset", "own")
    assert lines(together) == {client: [] for client in CLIENTS}


def test_no_client_s_own_folder_holds_the_name_that_another_s_ledger_has(together):
    together.stage("joint_release", "--dataset", "own")
    together.stage(
        "train_generator", "--dataset", "own", "--client", "c0", "--generator", GENERATOR
    )
    content = (together.path / paths.generator("own", "c0", GENERATOR) / "release.json").read_text()
    entered = lines(together)
    assert entered["c0"][0]["fingerprint"] in content
    assert entered["c1"][0]["fingerprint"] not in content


def test_a_member_s_ledger_that_is_gone_is_named_in_a_sentence(together):
    together.stage("joint_release", "--dataset", "own")
    for file in (together.path / "ledgers/own").glob("c1.[jh]*"):
        file.unlink()
    with pytest.raises(UserError, match="The ledger of c1 knows no closed release"):
        together.stage(
            "train_generator", "--dataset", "own", "--client", "c0", "--generator", GENERATOR
        )


def test_a_run_that_died_goes_on_and_is_charged_once(together, monkeypatch):
    def dies(self, number, sums, plan):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.privacy.secure_sums.in_process.Summation.total", dies)
        with pytest.raises(KeyboardInterrupt):
            together.stage("joint_release", "--dataset", "own")
    for entered in lines(together).values():
        assert [line["event"] for line in entered] == ["open"]
    together.stage("joint_release", "--dataset", "own")
    for entered in lines(together).values():
        assert [line["event"] for line in entered] == ["open", "close"]


def test_without_a_joint_generator_there_is_nothing_but_the_salt(within):
    within.stage("prepare", "--dataset", "own")
    within.stage("partition", "--dataset", "own")
    within.stage("joint_release", "--dataset", "own")
    folder = within.path / paths.joint("own")
    assert [file.name for file in folder.iterdir()] == ["salt"]
    assert not list((within.path / "ledgers/own").glob("*.jsonl"))


def test_who_has_a_budget_of_its_own_is_charged_and_stated_alone(together):
    together.edit(lambda params: params["clients"]["c2"].update(epsilon=5.0))
    together.stage("joint_release", "--dataset", "own")
    for client, entered in lines(together).items():
        assert [line["event"] for line in entered] == ["open", "close"]
        assert entered[0]["parameters"]["clients"] == 1
        together.stage(
            "train_generator", "--dataset", "own", "--client", client, "--generator", GENERATOR
        )
    together.stage(
        "export_synthetic", "--dataset", "own", "--client", "c2", "--generator", GENERATOR
    )
    card = read_json(together.path / paths.synthetic("own", "c2", GENERATOR) / "card.json")
    assert "together" not in card and "trust" not in card["privacy"]
    assert card["privacy"]["epsilon"] == 5.0


@pytest.mark.parametrize("content", [{}, {"fingerprints": ["c0"], "weak": []}])
def test_a_damaged_joint_release_is_named(together, content):
    together.stage("joint_release", "--dataset", "own")
    path = together.path / paths.joint("own") / GENERATOR / "c0" / "release.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=Path(path).name):
        together.stage(
            "train_generator", "--dataset", "own", "--client", "c0", "--generator", GENERATOR
        )


def test_the_ledger_of_each_client_knows_the_statement(together):
    together.stage("joint_release", "--dataset", "own")
    path = together.path / paths.joint("own") / GENERATOR / "c0" / "release.json"
    fingerprints = read_json(path)["fingerprints"]
    assert list(fingerprints) == list(CLIENTS)
    with together.entered():
        params = config.load()
        for client in CLIENTS:
            stated = releases.statement(params, "own", client, fingerprints[client])
            assert stated["trust"].startswith("This bound holds while at most 1 of the 3 clients")
