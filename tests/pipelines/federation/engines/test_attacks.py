"""Dishonest members of the network: a foreign certificate, a server whose own policy lets everything pass."""

import json
import shutil

import pytest
from project import ROOT

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from network import CLIENTS, PPPFL

from pipelines import config
from pipelines.errors import UserError
from pipelines.federation.engines.flare import carried, jobs, kits, names, processes

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("inside")]


def test_a_client_with_anothers_certificate_is_refused(project):
    project.edit(lambda params: params["federation"].update(start_timeout=15.0))
    params, run, work = config.load(), PPPFL, project.path / ".scratch/nvflare/foreign"
    own, homes = carried.laid_out(params, [run], work)
    foreign = kits.provision(work / "foreign", CLIENTS, carried.HOST, processes.free_ports(2))
    for name in ("client.crt", "client.key"):  # a certificate for c0, by an authority that is not ours
        shutil.copy(foreign / "c0/startup" / name, own / "c0/startup" / name)
    with (
        pytest.raises(UserError, match=r"After 15 s these clients have not come: c0\."),
        carried.network(params, own, homes, work) as network,
    ):
        network.carry(run)


@pytest.mark.parametrize("kind", ["a class that is not allowed", "code that comes with the job"])
def test_a_client_runs_nothing_that_a_job_brings(kind, project, tmp_path, monkeypatch):
    """A dishonest server: its own policy lets everything pass, the clients' must not."""
    params, run, work, marker = config.load(), PPPFL, project.path / ".scratch/nvflare/evil", tmp_path / "ran"
    written = jobs.write

    def evil(folder, *arguments):
        written(folder, *arguments)
        file = folder / "client/config/config_fed_client.json"
        content = json.loads(file.read_text())
        path, given = "subprocess.Popen", {"args": ["touch", str(marker)]}
        if kind == "code that comes with the job":
            (folder / "client/custom").mkdir()
            code = (
                f"import pathlib\nclass Evil:\n    def __init__(self):\n        pathlib.Path({str(marker)!r}).touch()\n"
            )
            (folder / "client/custom/evil.py").write_text(code)
            path, given = "evil.Evil", {}
        content["components"].append({"id": "evil", "path": path, "args": given})
        file.write_text(json.dumps(content))

    monkeypatch.setattr(jobs, "write", evil)
    own, homes = carried.laid_out(params, [run], work)
    local = own / carried.HOST / "local"
    resources = json.loads((local / "resources.json").read_text())
    (local / "resources.json").write_text(json.dumps({**resources, "class_allow_list": ["*"]}))
    policy = json.loads((local / "authorization.json").read_text())
    policy["permissions"]["project_admin"] = "any"
    (local / "authorization.json").write_text(json.dumps(policy))
    with pytest.raises(UserError), carried.network(params, own, homes, work) as network:
        network.carry(run)
    assert not marker.exists()


REFUSED = ("invalid_request", "NVFLARE_ERROR: the job's name is none")


def test_a_client_answers_what_a_job_needs_and_nothing_else(project, tmp_path, monkeypatch):
    """What the server's own process, and another client's, send NVFlare's cells beside the job. The control is c2,
    whose owner took our launcher and deployer out: what c0 refuses, c2 answers and does."""
    params, work, told = config.load(), project.path / ".scratch/nvflare/hostile", tmp_path / "told"
    monkeypatch.setenv("HOSTILE", str(told))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests/tap"))
    own, homes = carried.laid_out(params, [PPPFL], work)
    for name, kind in ((carried.HOST, "Server"), ("c1", "Client")):
        part = {"id": "hostile", "path": f"hostile.{kind}", "args": {}}
        changed(own / name, lambda parts, part=part: parts.append(part))
    changed(own / "c2", theirs)
    with carried.network(params, own, homes, work) as network:
        network.carry(PPPFL)
        policies = {client: (own / client / "local/resources.json").exists() for client in ("c0", "c2")}
    answers = [json.loads(line) for line in told.read_text().splitlines()]
    said = {
        client: {(answer["process"], answer["topic"]): answer for answer in answers if answer["client"] == client}
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


def changed(kit, change) -> None:
    """`change` on the parts of a participant's process."""
    file = kit / "local/resources.json"
    resources = json.loads(file.read_text())
    change(resources["components"])
    file.write_text(json.dumps(resources))


def theirs(parts: list[dict]) -> None:
    """NVFlare's own parts instead of ours."""
    parts[:] = [part for part in parts if part["path"] != names.DEPLOYER]
    for part in parts:
        if part["path"] == names.LAUNCHER:
            part["path"] = "nvflare.app_common.job_launcher.client_process_launcher.ClientProcessJobLauncher"
