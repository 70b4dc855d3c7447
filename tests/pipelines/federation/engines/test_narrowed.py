"""What a client answers and deploys, without a network; test_attacks asks over one."""

import io
import json
import zipfile
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from nvflare.apis.resource_manager_spec import ResourceManagerSpec
from nvflare.collab.runtime import dispatch
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
from nvflare.private.admin_defs import Message
from nvflare.private.defs import new_cell_message
from nvflare.private.fed.client import admin
from nvflare.private.fed.client.admin_commands import AdminCommands
from nvflare.private.fed.client.client_engine_internal_spec import ClientEngineInternalSpec
from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors
from nvflare.private.fed.client.scheduler_cmds import StartJobProcessor
from nvflare.private.fed.utils.app_deployer import AppDeployer

from pipelines.federation.engines.flare import deployer, names, narrowed

JOB = "7e2a2071-eb9f-4278-ac40-583ddf718a02"


def zipped(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


OURS = {names.CLIENT_FILE: json.dumps(names.CLIENT_APP), ".__nvfl_sig.json": "{}", "config/.__nvfl_submitter.crt": ""}


def test_the_job_that_we_write_is_deployed():
    assert not deployer.wrong_with(JOB, zipped(OURS))


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
    assert deployer.wrong_with(JOB, zipped({**OURS, **more})).startswith("the job ")


@pytest.mark.parametrize("name", ["local", "startup", "audit.log", "../c1", JOB + "/..", JOB + "\n", JOB.upper(), ""])
def test_a_job_whose_name_leads_elsewhere_is_not(name):
    """NVFlare removes the folder of that name before it looks at the app."""
    assert deployer.wrong_with(name, zipped(OURS)) == "the job's name is none"


@pytest.fixture
def narrowed_here(monkeypatch):
    """As in a client's processes, until the test is over."""
    for owner, name in ((ClientRequestProcessors, "request_processors"), (AdminCommands, "commands")):
        monkeypatch.setattr(owner, name, list(getattr(owner, name)))
    narrowed.narrow(monkeypatch.setattr)


def test_the_clients_process_answers_the_life_of_a_job_and_nothing_else(narrowed_here):
    topics = {topic for one in ClientRequestProcessors.request_processors for topic in one.get_topics()}
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
    guarded = narrowed.from_the_server_alone(lambda cell, origin, message: handled.append(message))
    cell = SimpleNamespace(my_info=SimpleNamespace(fqcn="c0"))
    reply = guarded(cell, origin=origin, message=new_cell_message({MessageHeaderKey.CHANNEL: channel}, None))
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
    agent = SimpleNamespace(auditor=None, processors={"x": 1}, app_ctx=SimpleNamespace(new_context=nullcontext))
    agent.processors["x"] = SimpleNamespace(process=failing)
    return admin.FedAdminAgent._dispatch_request(agent, new_cell_message({}, Message("x", ""))).payload.body


def said_by_a_call() -> str:
    headers = {"collab__authenticated_caller": "server", "collab__method_name": "end", "collab__target_name": "c0"}
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
    "said", [said_by_the_start_of_a_job, said_by_the_clients_process, said_by_a_call, said_by_the_deployer]
)
def test_the_text_of_an_exception_stays_here(said, request, caplog):
    assert "3 records" in said()  # as NVFlare has it
    request.getfixturevalue("narrowed_here")
    caplog.clear()
    answer = said()
    assert "ValueError" in answer and "records" not in answer and "File" not in answer
    assert "3 records" in caplog.text
