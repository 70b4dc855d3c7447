"""Tests what a kit lets others ask of its owner's machine, and the commands that make and start
kits.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import time

import pytest
from project import ENV, ROOT

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from pipelines import config
from pipelines.errors import UserError
from pipelines.federation.network.flare import jobs, kits, names, processes
from pipelines.federation.run_spec import RunSpec
from pipelines.guard import checks


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return kits.provision(tmp_path_factory.mktemp("kits"), ["c0", "c1"], "localhost", (8002, 8003))


def local(made, name: str, file: str) -> dict:
    return json.loads((made / name / "local" / file).read_text())


def test_everyone_has_a_kit_with_a_key_of_its_own(made):
    everyone = ["localhost", "c0", "c1", names.ADMIN]
    keys = {next((made / name / "startup").glob("*.key")).read_bytes() for name in everyone}
    assert len(keys) == len(everyone)
    for name in ("c0", "c1"):
        client = json.loads((made / name / "startup/fed_client.json").read_text())["client"]
        assert client["connection_security"] == "mtls"


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_no_other_user_of_the_machine_reads_a_kit_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        kits.provision(tmp_path / "kits", ["c0"], "localhost", (8002, 8003))
    finally:
        os.umask(before)
    modes = {
        path: stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "kits", *(tmp_path / "kits").rglob("*"))
    }
    keys = [path for path in modes if path.suffix == ".key"]
    assert len(keys) == 3
    assert {modes[path] for path in (*keys, tmp_path / "kits/fedlens/state/cert.json")} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert not any(mode & 0o077 for mode in modes.values())


@pytest.mark.parametrize("client", ["c0", "c1"])
def test_a_client_may_be_asked_for_two_classes_and_nothing_else(made, client):
    resources = local(made, client, "resources.json")
    assert resources["class_allow_list"] == [names.CLIENT, names.EXECUTOR]
    assert (
        resources["class_list_enforcement_mode"] == "enforce"
        and resources["allow_log_streaming"] is False
    )
    assert not any("stream" in part["id"] for part in resources["components"])
    for rights in local(made, client, "authorization.json")["permissions"].values():
        assert all(rights[name] == "none" for name in ("byoc", "shell_commands", "clone_job"))
        assert "app_command" not in rights


def test_the_submitter_may_ask_the_server_for_the_phase_of_a_job(made):
    (rights,) = local(made, "localhost", "authorization.json")["permissions"].values()
    assert rights["app_command"] == "any"


def test_the_servers_processes_are_guarded_and_its_class_list_is_its_own(made):
    resources = local(made, "localhost", "resources.json")
    (launcher,) = (part for part in resources["components"] if part["id"] == "process_launcher")
    assert launcher["path"] == names.SERVER_LAUNCHER
    assert resources["class_allow_list"] == [names.SERVER, names.CONTROLLER]


def test_the_servers_jobs_lie_in_its_kit_once_it_is_where_it_runs(made):
    kits.set_storage(made / "localhost")
    resources = local(made, "localhost", "resources.json")
    places = [resources["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"]]
    places += [
        part["args"]["uri_root"] for part in resources["components"] if part["id"] == "job_manager"
    ]
    assert len(places) == 2 and all(
        place.startswith(str(made.resolve() / "localhost")) for place in places
    )


def told(*arguments: str) -> str:
    command = [sys.executable, "-m", "pipelines.federation.network.flare", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=ENV, text=True, capture_output=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    return done.stderr


def provisioned(checkout, *folder: str) -> str:
    """Runs the documented command and returns what it says."""
    command = [
        sys.executable,
        "-m",
        "pipelines.federation.network.flare",
        "provision",
        *folder,
        "--host",
        "localhost",
    ]
    return checkout.run(*command).stdout


CLIENTS = ("admin@fedlens.org", "c0", "c1")
KEYS = (*(f"{client}/startup/client.key" for client in CLIENTS), "localhost/startup/server.key")


def test_kits_lie_beside_the_checkout_unless_told_otherwise(checkout):
    said = provisioned(checkout)
    beside = checkout.path.with_name("fedlens-kits")
    assert (
        f"in {beside}/fedlens/prod_00" in said
        and f"{beside}/fedlens/state: keep it offline" in said
    )
    assert (beside / "fedlens/prod_00/c0/startup/client.key").exists()
    assert checkout.git("status", "--porcelain") == ""


def test_git_takes_nothing_of_kits_in_the_checkout(checkout):
    provisioned(checkout, "kits")
    assert checkout.git("add", "-A", "-n") == ""
    assert checks.problems(checkout.path) == []
    lines = (checkout.path / ".gitignore").read_text().splitlines()
    kept = [line for line in lines if line not in ("/kits/", "*.key", "cert.json")]
    (checkout.path / ".gitignore").write_text("\n".join(kept) + "\n")
    found = checks.problems(checkout.path)
    keys = [f"kits/fedlens/prod_00/{key}" for key in KEYS]
    for file in (*keys, "kits/fedlens/state/cert.json"):
        assert (
            sum(
                line.startswith(f"{file} holds a private key, and Git tracks it or")
                for line in found
            )
            == 1
        )
    assert (
        any(line.startswith("kits/probe would be added") for line in found)
        and len(found) == len(keys) + 2
    )


def test_kits_in_another_folder_of_the_checkout_are_named_by_whatever_name_they_get_into_git(
    checkout,
):
    provisioned(checkout, "kits")
    (checkout.path / "kits").rename(checkout.path / "clinics")
    taken = checkout.git("add", "-A", "-n")
    assert "clinics/" in taken and ".key" not in taken and "cert.json" not in taken
    assert checks.problems(checkout.path) == []
    startup = checkout.path / "clinics/fedlens/prod_00/c0/startup"
    (startup / "client.key").rename(startup / "client.txt")
    shutil.make_archive(
        str(checkout.path / "handout"), "zip", checkout.path / "clinics/fedlens/prod_00/c1"
    )
    checkout.git("add", "-f", "clinics/fedlens/state/cert.json")
    named = [line.split(" holds a private key")[0] for line in checks.problems(checkout.path)]
    assert named == [
        "clinics/fedlens/prod_00/c0/startup/client.txt",
        "clinics/fedlens/state/cert.json",
        "handout.zip: startup/client.key",
    ]


def test_kits_where_git_would_take_them_are_refused(checkout):
    for folder in (checkout.path / "clinics", checkout.path / "docs/kits"):
        with pytest.raises(UserError, match="lies in a Git repository that does not ignore it"):
            kits.provision(folder, ["c0"], "localhost", (8002, 8003))
        assert not folder.exists()


def test_kits_are_not_made_over_others(tmp_path):
    assert "is there already" in told("provision", str(tmp_path), "--host", "localhost")


@pytest.mark.parametrize("name", ["server", "server_job"])
def test_a_client_with_the_servers_name_has_no_kit(name, tmp_path):
    with pytest.raises(UserError, match=f"No client of a network may be called '{name}'"):
        kits.provision(tmp_path / "kits", ["c0", name], "localhost", (8002, 8003))
    assert not (tmp_path / "kits").exists()


def test_what_is_no_kit_does_not_start(tmp_path):
    assert "is no kit of a server or client" in told("start", str(tmp_path))


def test_a_job_holds_names_and_no_code(tmp_path):
    params = config.load(ROOT / "params.yaml")
    run = RunSpec("digits", "fedavg", "dp_moments")
    jobs.write(tmp_path / "job", run.names, run.terms(params), ["c0", "c1"], params.federation)
    files = {
        str(file.relative_to(tmp_path / "job"))
        for file in (tmp_path / "job").rglob("*")
        if file.is_file()
    }
    assert files == {
        "meta.json",
        "server/config/config_fed_server.json",
        "client/config/config_fed_client.json",
    }
    text = "".join((tmp_path / "job" / file).read_text() for file in files)
    assert not any(secret in text for secret in ("epsilon", str(ROOT), "records"))


def test_processes_are_found_by_the_folder_that_they_work_in(tmp_path):
    (tmp_path / "homes/c0").mkdir(parents=True)
    environment = processes.environment(tmp_path / "homes/c0")
    with subprocess.Popen(["sleep", "60"], env=environment, start_new_session=True) as sleeping:
        try:
            until = time.monotonic() + 5
            while not processes._working_in(tmp_path / "homes") and time.monotonic() < until:
                time.sleep(0.01)  # the system names a process a moment after it has begun
            assert processes._working_in(tmp_path / "homes") == [sleeping.pid]
            assert not processes._working_in(tmp_path / "home")
            processes.end(tmp_path / "homes")
            assert sleeping.wait(timeout=10) != 0
        finally:
            sleeping.kill()
    assert not processes._working_in(tmp_path / "homes")
