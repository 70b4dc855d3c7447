"""A server's job process: NVFlare's own, guarded before it connects.

python -m pipelines.federation.network.flare.server_worker ...   as `server_launcher` starts it, with NVFlare's own
"""

import runpy

from pipelines.federation.network.flare.origins import guard

if __name__ == "__main__":
    guard()
    runpy.run_module(
        "nvflare.private.fed.app.server.runner_process", run_name="__main__", alter_sys=True
    )
