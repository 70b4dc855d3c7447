"""Walks through docs/deployment.md, on loopback: from three folders of records to personal models.

Every command is read from the page. The server, with the submitter, and each client have a checkout
of their own.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from project import CANARY, ENV, ROOT, Project, own_images

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from pipelines import paths
from pipelines.federation.network.flare import names, processes
from pipelines.files import read_json

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PAGE = (ROOT / "docs/deployment.md").read_text()
CLINICS = ["clinic_a", "clinic_b", "clinic_c"]
HOST = "localhost"
GENERATOR = "dp_moments"
# {the road: the folder of its model below models/initial/own}
ROADS = {
    "pppfl": GENERATOR,
    "pooled": f"{GENERATOR}-pooled",
    "fedavg": f"{GENERATOR}-fedavg",
    "dpsgd_head": "noisy-dpsgd_head",
}


def from_page(command: str, **instead: str) -> str:
    """Returns a command that stands on the page in these words, with names put in for others."""
    assert re.search(rf"^    {re.escape(command)}( +#.*)?$", PAGE, re.MULTILINE), command
    for name, value in instead.items():
        command = command.replace(PLACES[name], value)
    return command


NETWORK = "python -m pipelines.federation.network.flare"
SETS = "dvc repro prepare partition 'train_generator@..' 'export_synthetic@..' 'check_quality@..'"
# what the page writes for what a reader has
PLACES = {
    "host": "server.example.org",
    "kit": "path/to/kit",
    "dataset": "NAME",
    "train": "'train_generator@..'",
    "export": "'export_synthetic@..'",
    "check": "'check_quality@..'",
}


def everybody(params: dict) -> None:
    """Changes the parameters of the server, which is the submitter, too."""
    params["clients"] = {clinic: {"epsilon": 5.0} for clinic in CLINICS}
    params["partition"].update(clients=CLINICS, small=None)
    params["synthesis"]["generators"] = [GENERATOR]
    params["baselines"]["algorithms"] = ["pooled", "fedavg"]
    params["dp_baselines"]["algorithms"] = ["dpsgd_head"]
    params["new_clients"]["held_out"] = []
    params["federation"].update(engine="nvflare", mode="remote")


def alone(params: dict, clinic: str) -> None:
    """Changes a client's parameters as section 1 says."""
    params["clients"] = {clinic: {"epsilon": 5.0}}
    params["partition"].update(clients=[clinic], small=None)
    params["new_clients"]["held_out"] = []


@pytest.fixture(scope="module")
def checkouts(_checkout, tmp_path_factory) -> dict[str, Project]:
    """Returns {server or client: its checkout}. Each client has other records."""
    folder = tmp_path_factory.mktemp("organisations")
    images = own_images(450)
    made = {}
    for number, name in enumerate([HOST, *CLINICS]):
        made[name] = Project(folder / name / "fedlens")
        shutil.copytree(_checkout, made[name].path)
        made[name].edit(everybody)
        (made[name].path / "raw/own.npz").unlink()
        if name != HOST:
            made[name].edit(lambda params, name=name: alone(params, name))
            first = 150 * (number - 1)
            mine = {key: array[first : first + 150] for key, array in images.items()}
            np.savez(made[name].path / "raw/own.npz", **mine)
    return made


def run(project: Project, command: str) -> str:
    """Runs a command as a terminal does, and returns what it prints."""
    return project.run("bash", "-c", command).stdout


@pytest.fixture(scope="module")
def network(checkouts) -> Iterator[Path]:
    """Makes kits, each client's set, and a running server with its clients: sections 2, 3 and 4."""
    server = checkouts[HOST]
    ports = " ".join(map(str, processes.free_ports(2)))
    provision = f"{NETWORK} provision --host server.example.org"
    said = run(server, f"{from_page(provision, host=HOST)} --ports {ports}")
    kits = server.path.parent / "fedlens-kits/fedlens/prod_00"
    assert str(kits) in said and {kit.name for kit in kits.iterdir()} == {
        HOST,
        *CLINICS,
        names.ADMIN,
    }
    for clinic in CLINICS:
        cell = f"own-{clinic}-{GENERATOR}"
        stages = {
            "train": f"train_generator@{cell}",
            "export": f"export_synthetic@{cell}",
            "check": f"check_quality@{cell}",
        }
        run(checkouts[clinic], from_page(SETS, **stages))
    with ExitStack() as running:
        for name in (HOST, *CLINICS):
            kit = kits / name
            check = from_page("nvflare preflight-check -p path/to/kit", kit=str(kit))
            preflight = run(checkouts[name], check)
            assert "FAILED" not in preflight, preflight
            log = running.enter_context((kit.parent / f"{name}.log").open("w"))
            process = subprocess.Popen(
                shlex.split(from_page(f"{NETWORK} start path/to/kit", kit=str(kit))),
                cwd=checkouts[name].path,
                env=ENV,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            running.callback(ended, process, checkouts[name].path)
            if name == HOST:
                time.sleep(10)
        yield kits


def ended(process: subprocess.Popen, home: Path) -> None:
    """Ends a participant, and the processes of its jobs."""
    process.terminate()
    processes.end(home.parent)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def terminals(checkouts, network) -> dict[str, str]:
    """Returns {road: what the submitter's terminal said}, after each model was trained: section 5."""
    server = checkouts[HOST]
    ours = {"kit": str(network), "dataset": "own"}
    submit = f"FEDLENS_KIT=path/to/kit/{names.ADMIN} python -m"
    train = f"{submit} stages.meta_train --dataset NAME --generator {GENERATOR}"
    said = {"pppfl": run(server, from_page(train, **ours))}
    # section 6: where the sets stay at home, each client gives its card
    for clinic in CLINICS:
        card = paths.synthetic("own", clinic, GENERATOR) / "card.json"
        (server.path / card).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(checkouts[clinic].path / card, server.path / card)
    other = from_page(f"{train} --method pooled", **ours)
    for method in ("pooled", "fedavg"):
        said[method] = run(server, other.replace("pooled", method))
    noisy = f"{submit} stages.train_noisy --dataset NAME --algorithm dpsgd_head"
    said["dpsgd_head"] = run(server, from_page(noisy, **ours))
    return said


def test_the_terminal_tells_who_is_there_and_where_logs_lie(terminals, network):
    for road, said in terminals.items():
        assert "The server answers. Waiting for 3 clients: clinic_a, clinic_b, clinic_c." in said
        assert "(3 of 3)." in said, road
        (log,) = re.findall(r"Its log is (\S+/log\.txt) in the kit of each client", said)
        for clinic in CLINICS:
            assert (network / clinic / log).read_text(), road
        (log,) = re.findall(r"The server's log has come with its results: (\S+)", said)
        assert Path(log).read_text(), road


def test_each_client_makes_every_model_its_own_at_home(checkouts, terminals):
    for clinic in CLINICS:
        home = checkouts[clinic]
        for folder in ROADS.values():
            for place in ("models/initial/own", "models/private/costs/own"):
                shutil.copytree(checkouts[HOST].path / place / folder, home.path / place / folder)
        run(home, from_page("dvc repro -s 'train_alone@NAME'", dataset="own"))
        tune = "python -m stages.fine_tune"
        commands = {
            "pppfl": f"dvc repro -s 'fine_tune@NAME-{GENERATOR}'",
            "pooled": f"{tune} --dataset NAME --generator {GENERATOR} --method pooled",
            "dpsgd_head": f"{tune}_noisy --dataset NAME --algorithm dpsgd_head",
        }
        commands = {road: from_page(text, dataset="own") for road, text in commands.items()}
        commands["fedavg"] = commands["pooled"].replace("pooled", "fedavg")
        for road, command in commands.items():
            assert "accuracy" in run(home, command), road
        for road, folder in ROADS.items():
            (made,) = (home.path / "models/private/personal/own" / folder).glob(f"{road}*")
            assert (made / f"{clinic}.safetensors").exists(), road
            assert list(read_json(made / "results.json")["clients"]) == [clinic]


def test_no_record_is_with_anybody_but_its_owner(checkouts, terminals):
    for name, project in checkouts.items():
        shards = [shard.parent.name for shard in project.path.rglob("train.npz")]
        assert set(shards) <= {name}, name
        ledgers = {ledger.stem for ledger in (project.path / "ledgers").rglob("*.jsonl")}
        assert ledgers == ({name} if name != HOST else set())


def test_no_record_is_in_any_file_of_the_server_or_the_submitter(checkouts, terminals):
    """Not in the kits, nor in the sets that were handed in, nor in what was fetched."""
    files = [file for file in checkouts[HOST].path.parent.rglob("*") if file.is_file()]
    assert any(file.name == "pool.npz" for file in files)
    for file in files:
        contents = [file.read_bytes()]
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                contents += [archive.read(name) for name in archive.namelist()]
        # the tests' own code names the canary
        if file.suffix not in (".py", ".pyc"):
            assert not any(CANARY in content for content in contents), file
    # the control: a client has them
    shard = paths.shards("own") / "clinic_a/train.npz"
    with zipfile.ZipFile(checkouts["clinic_a"].path / shard) as archive:
        assert any(CANARY in archive.read(name) for name in archive.namelist())


def test_the_guard_passes_at_every_client(checkouts, terminals):
    for clinic in CLINICS:
        done = checkouts[clinic].run("python", "-m", "pipelines.guard", ok=False)
        assert done.returncode == 0, done.stdout + done.stderr
