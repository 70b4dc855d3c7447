"""A client's job process: NVFlare's own, narrowed before it connects.

python -m pipelines.federation.network.flare.worker ...   as `launcher` starts it, with NVFlare's arguments
"""

import runpy

from pipelines.federation.network.flare.hardening import narrow

if __name__ == "__main__":
    narrow()
    runpy.run_module(
        "nvflare.private.fed.app.client.worker_process", run_name="__main__", alter_sys=True
    )
