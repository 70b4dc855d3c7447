"""What a kit lets its owner's machine be asked for, and the commands that make and start kits."""

import json
import stat
import subprocess
import sys
import time

import pytest
from project import ENV, ROOT

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from pipelines import config
from pipelines.errors import UserError
from pipelines.federation.engines.flare import jobs, kits, names, processes
from pipelines.federation.runs import Run


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


def test_no_other_user_of_the_machine_reads_a_key(made):
    folder = made.parents[1]
    assert list(folder.rglob("*.key")) and stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("client", ["c0", "c1"])
def test_a_client_may_be_asked_for_two_classes_and_nothing_else(made, client):
    resources = local(made, client, "resources.json")
    assert resources["class_allow_list"] == [names.CLIENT, names.EXECUTOR]
    assert resources["class_list_enforcement_mode"] == "enforce" and resources["allow_log_streaming"] is False
    assert not any("stream" in part["id"] for part in resources["components"])
    for rights in local(made, client, "authorization.json")["permissions"].values():
        assert all(rights[name] == "none" for name in ("byoc", "shell_commands", "clone_job"))


def test_the_servers_processes_are_guarded_and_its_class_list_is_its_own(made):
    resources = local(made, "localhost", "resources.json")
    (launcher,) = (part for part in resources["components"] if part["id"] == "process_launcher")
    assert launcher["path"] == names.SERVER_LAUNCHER
    assert resources["class_allow_list"] == [names.SERVER, names.CONTROLLER]


def test_the_servers_jobs_lie_in_its_kit_once_it_is_where_it_runs(made):
    kits.settle(made / "localhost")
    resources = local(made, "localhost", "resources.json")
    places = [resources["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"]]
    places += [part["args"]["uri_root"] for part in resources["components"] if part["id"] == "job_manager"]
    assert len(places) == 2 and all(place.startswith(str(made.resolve() / "localhost")) for place in places)


def told(*arguments: str) -> str:
    command = [sys.executable, "-m", "pipelines.federation.engines.flare", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=ENV, text=True, capture_output=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    return done.stderr


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
    run = Run("digits", "fedavg", "dp_moments")
    jobs.write(tmp_path / "job", run, run.terms(params), ["c0", "c1"], params.federation)
    files = {str(file.relative_to(tmp_path / "job")) for file in (tmp_path / "job").rglob("*") if file.is_file()}
    assert files == {"meta.json", "server/config/config_fed_server.json", "client/config/config_fed_client.json"}
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
