"""Tests methods beside PPPFL between organisations, as users run them: `--method` in `remote` mode.

The server, each client and the submitter are processes with a folder of their own. Each client's
params.yaml names itself alone.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import parameter_files
import pytest
from project import ENV, ROOT, Project

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from network import CLIENTS, GENERATOR, HEAD, POOLED

from pipelines import config, paths
from pipelines.datasets import exports
from pipelines.federation.network.flare import names, processes, submit
from pipelines.guard import uploads
from stages import fine_tune, meta_train, train_alone

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("inside")]

METHODS = ["pooled", "fedavg"]


class Federation(NamedTuple):
    """Holds the folders of a running federation.

    Attributes:
        submitter: Has everybody's card and no image.
        homes: {client or server: its folder}.
    """

    submitter: Project
    homes: dict[str, Path]

    def gather(self, gather_sets: bool, *participants: str) -> None:
        """Writes `federation.gather_sets` into the files of these participants, or of all."""
        folders = [self.homes[name] for name in participants]
        if not participants:
            folders = [self.submitter.path, *self.homes.values()]
        for folder in folders:
            Project(folder).edit(
                lambda content: content["federation"].update(gather_sets=gather_sets)
            )

    def train(self, method: str, ok: bool = True):
        return self.submitter.run(*command("meta_train", method), ok=ok)


def command(stage: str, method: str) -> list[str]:
    names_of_run = ["--dataset", "own", "--generator", GENERATOR, "--method", method]
    return [sys.executable, "-m", f"stages.{stage}", *names_of_run]


def alone(client: str, content: dict) -> None:
    content["clients"] = {client: {"epsilon": 7.0}}
    content["partition"]["clients"] = [client]


@pytest.fixture
def federation(project, monkeypatch, tmp_path) -> Iterator[Federation]:
    params = config.load()
    work = project.path / ".scratch/nvflare/methods"
    kits, homes = submit.lay_out(params, [POOLED, HEAD], work)
    submitter = Project(tmp_path / "submitter")
    for client in CLIENTS:
        Project(homes[client]).edit(partial(alone, client))
        card = paths.synthetic("own", client, GENERATOR) / "card.json"
        (submitter.path / card).parent.mkdir(parents=True)
        shutil.copy(card, submitter.path / card)
    parameter_files.copy_files(project.path, submitter.path)
    submitter.edit(lambda content: content["federation"].update(engine="nvflare", mode="remote"))
    monkeypatch.setitem(ENV, "PYTHONPATH", str(ROOT))
    monkeypatch.setitem(ENV, "FEDLENS_KIT", str(kits / names.ADMIN))
    with processes.started(kits, homes, work / "logs", {}):
        yield Federation(submitter, homes)


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def fine_tuned(client: str, federation: Federation, method: str, path: Path) -> dict[str, bytes]:
    """Gives a client the folders that the submitter has, and returns what it makes of them alone."""
    parameter_files.copy_files(federation.homes[client], path)
    name = paths.of_method(GENERATOR, method)
    hand_over(federation, client, [paths.initial("own", name), paths.cost("own", name)], path)
    Project(path).run(sys.executable, "-m", "stages.train_alone", "--dataset", "own")
    Project(path).run(*command("fine_tune", method))
    return files(
        path / paths.personal("own", paths.of_method(GENERATOR, method)) / f"{method}-{GENERATOR}"
    )


def hand_over(federation: Federation, client: str, folders: list[Path], path: Path) -> None:
    """Puts folders of the submitter beside a client's own records."""
    for folder in folders:
        shutil.copytree(federation.submitter.path / folder, path / folder)
    shard = paths.shards("own") / client
    shutil.copytree(shard, path / shard)
    test = paths.prepared("own") / "test.npz"
    (path / test).parent.mkdir(parents=True)
    shutil.copy(test, path / test)


@pytest.mark.slow
def test_each_method_gives_the_bytes_of_one_process_and_each_client_fine_tunes_alone(
    federation, tmp_path
):
    federation.gather(True)
    train_alone.run(config.load(), "own")
    for method in METHODS:
        federation.train(method)
        meta_train.run(config.load(), "own", GENERATOR, method)
        fine_tune.run(config.load(), "own", GENERATOR, method)
        place = paths.initial("own", paths.of_method(GENERATOR, method))
        remote = files(federation.submitter.path / place)
        assert set(remote) == {*uploads.INITIAL, uploads.POOL}
        # the submitter holds no set, so that it judges by the weights alone
        here = files(place)
        assert remote.pop("health.json") != here.pop("health.json")
        assert remote == here
        tuned = fine_tuned("c1", federation, method, tmp_path / method)
        folder = paths.personal("own", paths.of_method(GENERATOR, method)) / f"{method}-{GENERATOR}"
        assert tuned["c1.safetensors"] == (folder / "c1.safetensors").read_bytes()
        results = json.loads(tuned["results.json"])
        assert results["method"] == f"{method}/{GENERATOR}" and list(results["clients"]) == ["c1"]
        assert "c0.safetensors" not in tuned


@pytest.mark.slow
def test_without_the_setting_fedavg_leaves_the_sets_where_they_are(federation, tmp_path):
    federation.train("fedavg")
    folder = federation.submitter.path / paths.initial("own", paths.of_method(GENERATOR, "fedavg"))
    assert set(files(folder)) == set(uploads.INITIAL)
    cards = json.loads((folder / "cards.json").read_text())
    assert cards == exports.cards("own", CLIENTS, GENERATOR)
    cost_file = (
        federation.submitter.path
        / paths.cost("own", paths.of_method(GENERATOR, "fedavg"))
        / paths.COST
    )
    before = json.loads(cost_file.read_text())["bytes_up"]
    assert "c1.safetensors" in fine_tuned("c1", federation, "fedavg", tmp_path / "home")
    # every side says so, or nobody does
    federation.gather(True, *set(federation.homes) - {"c2"})
    Project(federation.submitter.path).edit(
        lambda content: content["federation"].update(gather_sets=True)
    )
    failed = federation.train("fedavg", ok=False)
    assert failed.returncode == 1
    assert "c2 and the server have different parameters for this run: gather_sets." in failed.stderr
    federation.gather(True, "c2")
    federation.train("fedavg")
    assert set(files(folder)) == {*uploads.INITIAL, uploads.POOL}
    sets = exports.images("own", CLIENTS, GENERATOR)
    images = sum(data.images.nbytes for data in sets.values())
    assert json.loads(cost_file.read_text())["bytes_up"] == before + images


def test_a_noisy_head_is_trained_between_machines_handed_out_and_adapted_by_each_client_alone(
    federation, tmp_path
):
    """Each ledger has the whole budget, and the submitter's folder what the clients spent."""
    for folder in (federation.submitter.path, *federation.homes.values()):
        Project(folder).edit(lambda content: content["privacy"].update(noise="os_entropy"))
    algorithm = ["--dataset", "own", "--algorithm", HEAD.method]
    done = federation.submitter.run(sys.executable, "-m", "stages.train_noisy", *algorithm)
    name = paths.of_noisy_method(HEAD.method)
    assert f"the model to hand out is {paths.initial('own', name)}" in done.stdout
    place = federation.submitter.path / paths.initial("own", name)
    assert set(files(place)) == set(uploads.OF_NOISE)
    privacy = json.loads((place / "privacy.json").read_text())
    assert privacy["guarantee"] == "formal"
    # each client's own file says 7, and the submitter's 5
    assert privacy["epsilon_by_client"] == pytest.approx(dict.fromkeys(CLIENTS, 7.0))
    for client in CLIENTS:
        lines = (federation.homes[client] / f"ledgers/own/{client}.jsonl").read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        assert [e["mechanism"] for e in entries if "mechanism" in e].count(HEAD.method) == 1
    home = tmp_path / "home"
    parameter_files.copy_files(federation.homes["c1"], home)
    hand_over(federation, "c1", [paths.initial("own", name), paths.cost("own", name)], home)
    Project(home).run(sys.executable, "-m", "stages.fine_tune_noisy", *algorithm)
    tuned = files(home / paths.personal("own", name) / HEAD.method)
    assert "c1.safetensors" in tuned and "c0.safetensors" not in tuned
    assert list(json.loads(tuned["results.json"])["clients"]) == ["c1"]
