"""Tests what a client answers and deploys, without a network. test_attacks does so over one."""

import io
import json
import stat
import zipfile
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from nvflare.apis.resource_manager_spec import ResourceManagerSpec
from nvflare.collab.runtime import dispatch
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
from nvflare.fuel.utils.zip_utils import zip_directory_to_bytes
from nvflare.private.admin_defs import Message
from nvflare.private.defs import new_cell_message
from nvflare.private.fed.client import admin, training_cmds
from nvflare.private.fed.client.admin_commands import AdminCommands
from nvflare.private.fed.client.client_engine_internal_spec import ClientEngineInternalSpec
from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors
from nvflare.private.fed.client.scheduler_cmds import StartJobProcessor
from nvflare.private.fed.utils.app_deployer import AppDeployer

from pipelines.federation.network.flare import common_hardening, deployer, hardening, names

JOB = "7e2a2071-eb9f-4278-ac40-583ddf718a02"


def zipped(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


OURS = {
    names.CLIENT_FILE: json.dumps(names.CLIENT_APP),
    ".__nvfl_sig.json": "{}",
    "config/.__nvfl_submitter.crt": "",
}


def test_the_job_that_we_write_is_deployed():
    assert not deployer.reason_to_refuse(JOB, zipped(OURS))


@pytest.mark.parametrize(
    "more",
    [
        {"config/comm_config.json": '{"comm_driver_path": "drivers"}'},
        {"drivers/evil.py": "import os"},
        {"custom/evil.py": "import os"},
        {"config/config_fed_client.conf": "include file(secret)"},
        {"config/resources.json": "{}"},
        {names.CLIENT_FILE: json.dumps({**names.CLIENT_APP, "task_result_filters": []})},
        {names.CLIENT_FILE: json.dumps({**names.CLIENT_APP, "components": []})},
    ],
)
def test_any_other_is_not(more):
    assert deployer.reason_to_refuse(JOB, zipped({**OURS, **more})).startswith("the job ")


def with_member(name: str, content: bytes = b"", **facts) -> bytes:
    """Returns our job with one more member, which the archive describes as given."""
    whole = io.BytesIO(zipped(OURS))
    with zipfile.ZipFile(whole, "a", zipfile.ZIP_DEFLATED) as archive:
        member = zipfile.ZipInfo(name)
        member.compress_type = zipfile.ZIP_DEFLATED
        for fact, value in facts.items():
            setattr(member, fact, value)
        with pytest.warns(UserWarning) if name in OURS else nullcontext():
            archive.writestr(member, content)
    return whole.getvalue()


def damaged() -> bytes:
    """Returns our job with one byte of a member changed, so that its check sum is another."""
    whole = bytearray(zipped(OURS))
    whole[whole.index(b"format_version")] ^= 1
    return bytes(whole)


def smaller_than_it_is() -> bytes:
    """Returns an archive with a member of two megabytes whose size it gives as ten bytes."""
    signature = "config/.__nvfl_sig.json"
    whole = bytearray(with_member(signature, bytes(2 * 2**20)))
    at = whole.rindex(b"PK\x01\x02")
    whole[at + 24 : at + 28] = (10).to_bytes(4, "little")
    return bytes(whole)


LINK = {"create_system": 3, "external_attr": (stat.S_IFLNK | 0o777) << 16}
ODD = {
    "another folder": lambda: with_member("custom/"),
    "a folder above": lambda: with_member("../"),
    "a signature in another folder": lambda: with_member("custom/.__nvfl_sig.json"),
    "the configuration twice": lambda: with_member(names.CLIENT_FILE, b"{}"),
    "a link": lambda: with_member("config/.__nvfl_sig.json", b"/etc/passwd", **LINK),
    "a file of ten megabytes": lambda: with_member("config/.__nvfl_sig.json", bytes(10 * 2**20)),
    "a file that says less than it holds": smaller_than_it_is,
    "a megabyte of nothing behind it": lambda: zipped(OURS) + bytes(2**20),
    "a damaged zip": damaged,
    "half a zip": lambda: zipped(OURS)[:200],
    "no zip": lambda: b"PK",
    "no bytes": lambda: "zip",
    "no JSON": lambda: zipped({**OURS, names.CLIENT_FILE: "{"}),
    "nested JSON": lambda: zipped({**OURS, names.CLIENT_FILE: "[" * 10**5}),
    "nothing": lambda: zipped({}),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_archive_is_refused_in_a_sentence(kind):
    said = deployer.reason_to_refuse(JOB, ODD[kind]())
    assert said.startswith("the job ") and said.isprintable()


def test_folders_and_signatures_as_nvflare_writes_them_are_ours(tmp_path):
    (tmp_path / "config").mkdir()
    for name, text in OURS.items():
        (tmp_path / name).write_text(text)
    assert not deployer.reason_to_refuse(JOB, zip_directory_to_bytes(str(tmp_path), ""))


def test_a_job_is_looked_at_before_nvflare_unpacks_it(monkeypatch, tmp_path):
    for folder in ("startup", "local"):
        (tmp_path / folder).mkdir()
    unpacked = []
    monkeypatch.setattr(
        training_cmds, "unzip_all_from_bytes", lambda *given: unpacked.append(given)
    )
    engine = Mock(ClientEngineInternalSpec)
    engine.args = SimpleNamespace(workspace=str(tmp_path))
    engine.get_client_name.return_value = "c0"
    for app, looked_at in ((zipped({}), False), (zipped(OURS), True)):
        message = Message("train.deploy", app)
        for header, value in (("job_id", JOB), ("job_meta", {"job_id": JOB}), ("app_name", "app")):
            message.set_header(header, value)
        training_cmds.DeployProcessor().process(message, engine)
        assert bool(unpacked) == looked_at


@pytest.mark.parametrize(
    "name",
    ["local", "startup", "audit.log", "../c1", JOB + "/..", JOB + "\n", JOB.upper(), "", None],
)
def test_a_job_whose_name_leads_elsewhere_is_not(name):
    """NVFlare removes the folder of that name before it looks at the app."""
    assert deployer.reason_to_refuse(name, zipped(OURS)) == "the job's name is none"


@pytest.fixture
def narrowed_here(monkeypatch):
    """Restricts this process as a client's processes, until the test is over."""
    for owner, name in (
        (ClientRequestProcessors, "request_processors"),
        (AdminCommands, "commands"),
    ):
        monkeypatch.setattr(owner, name, list(getattr(owner, name)))
    hardening.narrow(monkeypatch.setattr)


def test_the_clients_process_answers_the_life_of_a_job_and_nothing_else(narrowed_here):
    topics = {
        topic for one in ClientRequestProcessors.request_processors for topic in one.get_topics()
    }
    assert "train.deploy" in topics
    for word in ("shell", "delete", "info", "env", "restart", "shutdown", "log", "errors"):
        assert not [topic for topic in topics if word in topic], word


@pytest.mark.parametrize(
    ("origin", "channel", "answered"),
    [
        ("server", "admin", True),
        ("server.job", "collab", True),
        ("c0.job", "admin", True),
        ("c1", "admin", False),
        ("c1.server", "admin", False),
        ("serverx", "admin", False),
        ("", "admin", False),
        ("server", "_net_manager", False),
    ],
)
def test_who_is_answered(origin, channel, answered):
    handled = []
    within = common_hardening.without_cells_service(
        lambda cell, origin, message: handled.append(message)
    )
    guarded = hardening.from_the_server_alone(within)
    cell = SimpleNamespace(my_info=SimpleNamespace(fqcn="c0"))
    reply = guarded(
        cell, origin=origin, message=new_cell_message({MessageHeaderKey.CHANNEL: channel}, None)
    )
    assert bool(handled) == answered == (reply is None)


def failing(*_, **__):
    raise ValueError("3 records in raw/own.npz")


def said_by_the_start_of_a_job() -> str:
    engine = Mock(ClientEngineInternalSpec)
    engine.get_component.return_value, engine.new_context = Mock(ResourceManagerSpec), failing
    message = Message("train.start", {})
    message.set_header("job_id", JOB)
    return StartJobProcessor().process(message, engine).body


def said_by_the_clients_process() -> str:
    agent = SimpleNamespace(
        auditor=None, processors={"x": 1}, app_ctx=SimpleNamespace(new_context=nullcontext)
    )
    agent.processors["x"] = SimpleNamespace(process=failing)
    return admin.FedAdminAgent._dispatch_request(
        agent, new_cell_message({}, Message("x", ""))
    ).payload.body


def said_by_a_call() -> str:
    headers = {
        "collab__authenticated_caller": "server",
        "collab__method_name": "end",
        "collab__target_name": "c0",
    }
    app, log = (
        SimpleNamespace(name="c0", find_collab_method=lambda *_: failing),
        SimpleNamespace(error=print, debug=print),
    )
    app.new_context = failing
    return str(dispatch._call_app_method(new_cell_message(headers, {}), app, log).payload)


def said_by_the_deployer() -> str:
    workspace = SimpleNamespace(get_run_dir=failing)
    with pytest.raises(Exception) as raised:
        AppDeployer().deploy(workspace, JOB, {}, "app", b"", None)
    return str(raised.value)


@pytest.mark.parametrize(
    "said",
    [said_by_the_start_of_a_job, said_by_the_clients_process, said_by_a_call, said_by_the_deployer],
)
def test_the_text_of_an_exception_stays_here(said, request, caplog):
    assert "3 records" in said()  # as NVFlare has it
    request.getfixturevalue("narrowed_here")
    caplog.clear()
    answer = said()
    assert "ValueError" in answer and "records" not in answer and "File" not in answer
    assert "3 records" in caplog.text
