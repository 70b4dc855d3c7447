"""Runs NVFlare's job process of a client, restricted before it connects.

`launcher` runs it with NVFlare's arguments:

    python -m pipelines.federation.network.flare.worker ...
"""

import runpy

from pipelines.federation.network.flare.hardening import narrow

if __name__ == "__main__":
    narrow()
    runpy.run_module(
        "nvflare.private.fed.app.client.worker_process", run_name="__main__", alter_sys=True
    )
