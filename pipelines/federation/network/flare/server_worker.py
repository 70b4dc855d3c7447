"""Runs NVFlare's job process of a server, guarded before it connects.

`server_launcher` runs it with NVFlare's arguments:

    python -m pipelines.federation.network.flare.server_worker ...
"""

import runpy

from pipelines.federation.network.flare.origins import guard

if __name__ == "__main__":
    guard()
    runpy.run_module(
        "nvflare.private.fed.app.server.runner_process", run_name="__main__", alter_sys=True
    )
