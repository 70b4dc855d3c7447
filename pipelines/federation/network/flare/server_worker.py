"""Runs NVFlare's job process of a server, guarded before it connects.

`server_launcher` runs it with NVFlare's arguments:

    python -m pipelines.federation.network.flare.server_worker ...
"""

import runpy

from nvflare.private.fed.server.server_commands import ServerCommands

from pipelines.federation.network.flare.names import PROGRESS
from pipelines.federation.network.flare.origins import guard

if __name__ == "__main__":
    guard()
    # the submitter may ask before the job's `Server` is there
    ServerCommands.register_app_command(PROGRESS, lambda *_of_nvflare: {"phase": ""})
    runpy.run_module(
        "nvflare.private.fed.app.server.runner_process", run_name="__main__", alter_sys=True
    )
