"""A part of a dishonest server's own process: once a job runs, it sends its clients what NVFlare's clients answer, and
keeps each answer in a line of the file that HOSTILE names."""

import json
import os
import threading
import time

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import AdminCommandNames, FLContextKey
from nvflare.apis.job_def import JobMetaKey
from nvflare.fuel.f3.cellnet.defs import CellChannel, MessageHeaderKey, ReturnCode
from nvflare.private.admin_defs import Message
from nvflare.private.defs import SysCommandTopic, new_cell_message

CLIENTS = ("c0", "c2")
TO_CLIENTS = [(CellChannel.CLIENT_MAIN, SysCommandTopic.SHELL, Message(SysCommandTopic.SHELL, "ls"))]
TO_CLIENTS += [(CellChannel.CLIENT_MAIN, SysCommandTopic.SYS_INFO, Message(SysCommandTopic.SYS_INFO, ""))]
TO_JOBS = [
    (CellChannel.CLIENT_COMMAND, AdminCommandNames.SHOW_ERRORS, {}),
    (CellChannel.CLIENT_COMMAND, AdminCommandNames.CONFIGURE_JOB_LOG, "DEBUG"),
]
OF_CELLS = ("process_info", "config_vars", "peers", "cells", "list_pools")
TO_BOTH = [("_net_manager", topic, "rss") for topic in OF_CELLS]
GONE = (ReturnCode.TARGET_UNREACHABLE, ReturnCode.COMM_ERROR, ReturnCode.TIMEOUT)


class Hostile(FLComponent):
    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.JOB_STARTED:
            job = fl_ctx.get_prop(FLContextKey.EVENT_DATA)[JobMetaKey.JOB_ID.value]
            threading.Thread(target=asked, args=(fl_ctx.get_engine().get_cell(), job), daemon=True).start()


def asked(cell, job: str) -> None:
    for client in CLIENTS:
        for message in [*TO_CLIENTS, *TO_BOTH]:
            ask(cell, client, *message)
    for client in CLIENTS:
        while ask(cell, f"{client}.{job}", *TO_BOTH[0], keep=False) in GONE:
            time.sleep(0.1)
        for message in [*TO_JOBS, *TO_BOTH]:
            ask(cell, f"{client}.{job}", *message)


def ask(cell, target: str, channel: str, topic: str, content, keep: bool = True) -> str:
    answer = cell.core_cell.send_request(channel, topic, target, new_cell_message({}, content), timeout=5.0)
    code = answer.get_header(MessageHeaderKey.RETURN_CODE)
    if keep:
        client, _, job = target.partition(".")
        line = {"client": client, "process": "job" if job else "own", "topic": topic, "code": code}
        with open(os.environ["HOSTILE"], "a") as file:
            file.write(json.dumps({**line, "said": str(getattr(answer.payload, "body", answer.payload))}) + "\n")
    return code
