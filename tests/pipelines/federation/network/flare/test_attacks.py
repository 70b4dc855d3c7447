"""Tests dishonest members of the network: a foreign certificate, and a server whose own policy
allows everything.
"""

import contextlib
import json
import shutil
import time
from functools import partial
from pathlib import Path

import pytest
from project import ROOT

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from network import CLIENTS, PPPFL

from pipelines import config
from pipelines.errors import UserError
from pipelines.federation.network.flare import jobs, kits, names, processes, submit

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("inside")]


def test_a_client_with_anothers_certificate_is_refused(project):
    params, work = (
        within(config.load(), start_timeout=15.0),
        project.path / ".scratch/nvflare/foreign",
    )
    own, homes = submit.lay_out(params, [PPPFL], work)
    foreign = kits.provision(work / "foreign", CLIENTS, submit.HOST, processes.free_ports(2))
    for name in (
        "client.crt",
        "client.key",
    ):  # a certificate for c0, by an authority that is not ours
        shutil.copy(foreign / "c0/startup" / name, own / "c0/startup" / name)
    with (
        pytest.raises(UserError, match=r"After 15 s these clients have not come: c0\."),
        submit.network(params, own, homes, work) as network,
    ):
        network.execute(PPPFL)


def within(params: config.Params, **settings) -> config.Params:
    return params.model_copy(update={"federation": params.federation.model_copy(update=settings)})


CODE = """
import os, pathlib
class Evil:
    def __init__(self):
        pathlib.Path({marks!r}, pathlib.Path(os.environ["FEDLENS_HOME"]).name).touch()
"""


KINDS = ("a class that is not allowed", "code that comes with the job")


def test_a_client_runs_nothing_that_a_job_brings(project, tmp_path, monkeypatch):
    """The server is dishonest, and its own policy allows everything.

    The clients' own policy must not, even without our deployer's help. c2 is the control, whose
    owner allows everything, too.
    """
    params, work = within(config.load(), on_loss="skip"), project.path / ".scratch/nvflare/evil"
    own, homes = submit.lay_out(params, [PPPFL], work)
    for client in CLIENTS:
        changed(own / client, "resources.json", without_our_deployer)
    for name in (submit.HOST, "c2"):
        changed(
            own / name, "resources.json", lambda resources: resources.update(class_allow_list=["*"])
        )
        changed(
            own / name,
            "authorization.json",
            lambda policy: policy["permissions"].update(project_admin="any"),
        )
    written = jobs.write
    with submit.network(params, own, homes, work) as network:
        for kind in KINDS:
            (tmp_path / kind).mkdir()
            monkeypatch.setattr(jobs, "write", partial(brought, written, kind, tmp_path / kind))
            with contextlib.suppress(UserError):
                network.execute(PPPFL)
    for kind in KINDS:
        assert [mark.name for mark in (tmp_path / kind).iterdir()] == ["c2"], kind


def brought(written, kind: str, marks: Path, folder: Path, *arguments) -> None:
    """Writes a job as `jobs.write` does, and something into it that leaves a mark where it runs."""
    written(folder, *arguments)
    path, given = (
        "subprocess.Popen",
        {"args": ["sh", "-c", f'touch "{marks}/$(basename $FEDLENS_HOME)"']},
    )
    if kind == "code that comes with the job":
        (folder / "client/custom").mkdir()
        (folder / "client/custom/evil.py").write_text(CODE.format(marks=str(marks)))
        path, given = "evil.Evil", {}
    file = folder / "client" / names.CLIENT_FILE
    content = json.loads(file.read_text())
    content["components"].append({"id": "evil", "path": path, "args": given})
    file.write_text(json.dumps(content))
    # the server need not wait long for clients that have refused
    file = folder / "server/config/config_fed_server.json"
    content = json.loads(file.read_text())
    content["workflows"][0]["args"]["sync_task_timeout"] = 15.0
    file.write_text(json.dumps(content))


REFUSED = ("invalid_request", "NVFLARE_ERROR: the job's name is none")


def test_a_client_answers_what_a_job_needs_and_nothing_else(project, tmp_path, monkeypatch):
    """The server's own process, and another client's, send messages to NVFlare's cells beside the
    job.

    The control is c2, whose owner took our launcher and deployer out. c2 answers and does what c0
    refuses.
    """
    params, work, told = config.load(), project.path / ".scratch/nvflare/hostile", tmp_path / "told"
    monkeypatch.setenv("HOSTILE", str(told))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests/tap"))
    own, homes = submit.lay_out(params, [PPPFL], work)
    for name, kind in ((submit.HOST, "Server"), ("c1", "Client")):
        part = {"id": "hostile", "path": f"hostile.{kind}", "args": {}}
        changed(
            own / name,
            "resources.json",
            lambda resources, part=part: resources["components"].append(part),
        )
    changed(own / "c2", "resources.json", without_our_deployer)
    changed(own / "c2", "resources.json", without_our_launcher)
    with submit.network(params, own, homes, work) as network:
        network.execute(PPPFL)
        until = time.monotonic() + 60
        while told.read_text().count("\n") < 34 and time.monotonic() < until:
            time.sleep(0.2)
        policies = {
            client: (own / client / "local/resources.json").exists() for client in ("c0", "c2")
        }
    answers = [json.loads(line) for line in told.read_text().splitlines()]
    said = {
        client: {
            (answer["process"], answer["topic"]): answer
            for answer in answers
            if answer["client"] == client
        }
        for client in ("c0", "c2")
    }
    assert said["c0"].keys() == said["c2"].keys() and len(said["c0"]) == 17
    assert "startup" in said["c2"]["own", "sys.shell"]["said"]
    assert "Memory Usage" in said["c2"]["job", "process_info"]["said"]
    assert policies == {"c0": True, "c2": False}
    for key, answer in said["c0"].items():
        assert said["c2"][key]["code"] == "ok", key
        assert answer != {**said["c2"][key], "client": "c0"}, key
        assert answer["code"] != "ok" or answer["said"] in REFUSED, key


POSES = ("its own token", "a token that is not registered", "the server's token")


@pytest.mark.parametrize(
    "guarded", [True, False], ids=["the server's launcher", "the control without it"]
)
def test_a_client_does_not_pose_as_the_server_to_another(guarded, project, tmp_path, monkeypatch):
    """c1 asks c0 in the server's name: with its own token, with that token once c1 has quit, and with the token that
    the server's own messages carry. The control is NVFlare's own server, which passes the last two on."""
    params, work, told = config.load(), project.path / ".scratch/nvflare/posing", tmp_path / "told"
    told.touch()
    monkeypatch.setenv("HOSTILE", str(told))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests/tap"))
    own, homes = submit.lay_out(params, [], work)
    for name, kind in (("c0", "Witness"), ("c1", "Poser")):
        part = {"id": "hostile", "path": f"hostile.{kind}", "args": {}}
        changed(
            own / name,
            "resources.json",
            lambda resources, part=part: resources["components"].append(part),
        )
    if not guarded:
        changed(own / submit.HOST, "resources.json", without_the_servers_launcher)
    there = {name: homes[name] for name in (submit.HOST, "c0", "c1")}
    with processes.started(own, there, work / "logs", {}):
        said = work / f"logs/{submit.HOST}.log"
        # c1 comes back with the token it had, in its own name: what it sent before has passed or was refused by then
        within_seconds(60, lambda: "Re-activate the client: c1" in said.read_text())
        log = said.read_text()
    passed = {json.loads(line)["said"] for line in told.read_text().splitlines()}
    assert passed == (set() if guarded else set(POSES[1:]))
    assert log.count(
        "refused: a message of origin 'server' over the connection of 'c1'"
    ) == guarded * len(POSES)


def within_seconds(patience: float, happened) -> None:
    until = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.1)


def changed(kit, name: str, change) -> None:
    """Applies `change` to one of a participant's own files."""
    file = kit / "local" / name
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def without_our_deployer(resources: dict) -> None:
    resources["components"] = [
        part for part in resources["components"] if part["path"] != names.DEPLOYER
    ]


def without_our_launcher(resources: dict) -> None:
    for part in resources["components"]:
        if part["path"] == names.LAUNCHER:
            part["path"] = (
                "nvflare.app_common.job_launcher.client_process_launcher.ClientProcessJobLauncher"
            )


def without_the_servers_launcher(resources: dict) -> None:
    for part in resources["components"]:
        if part["path"] == names.SERVER_LAUNCHER:
            part["path"] = (
                "nvflare.app_common.job_launcher.server_process_launcher.ServerProcessJobLauncher"
            )
