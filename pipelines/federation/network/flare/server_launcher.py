"""Starts the job processes of a server, and guards the server's own process."""

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.job_launcher_spec import JobHandleSpec, JobProcessArgs
from nvflare.app_common.job_launcher.server_process_launcher import ServerProcessJobLauncher

from pipelines.federation.network.flare.names import SERVER_WORKER
from pipelines.federation.network.flare.origins import guard

# NVFlare imports this module, which the server's kit names, as the process begins
guard()


class ServerLauncher(ServerProcessJobLauncher):
    """Launches `server_worker` in place of NVFlare's own job process."""

    def launch_job(self, job_meta: dict, fl_ctx) -> JobHandleSpec:
        """Launches a job's process and returns its handle."""
        fl_ctx.get_prop(FLContextKey.JOB_PROCESS_ARGS)[JobProcessArgs.EXE_MODULE] = (
            "-m",
            SERVER_WORKER,
        )
        return super().launch_job(job_meta, fl_ctx)
