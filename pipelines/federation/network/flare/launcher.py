"""Starts the job processes of a client, and restricts the client's own process.

`engine` decides what a killed job process means, by `on_loss`. NVFlare's own launcher would report
it to the server, which then fails the whole job, whatever the other clients do.
"""

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.job_launcher_spec import JobHandleSpec, JobProcessArgs, JobReturnCode
from nvflare.app_common.job_launcher.client_process_launcher import ClientProcessJobLauncher

from pipelines.federation.network.flare.hardening import narrow
from pipelines.federation.network.flare.names import WORKER

# NVFlare imports this module, which the client's kit names, as the process begins
narrow()


class Launcher(ClientProcessJobLauncher):
    """Launches `worker` in place of NVFlare's own job process."""

    def launch_job(self, job_meta: dict, fl_ctx) -> JobHandleSpec:
        """Launches a job's process.

        Returns:
            A handle that does not report a process that failed.
        """
        fl_ctx.get_prop(FLContextKey.JOB_PROCESS_ARGS)[JobProcessArgs.EXE_MODULE] = ("-m", WORKER)
        return _QuietHandle(super().launch_job(job_meta, fl_ctx))


class _QuietHandle(JobHandleSpec):
    """Wraps a job's handle, and does not report that the process failed.

    NVFlare's runner reports what it found wrong itself, such as a configuration, by a file. That
    report stays.
    """

    def __init__(self, handle: JobHandleSpec):
        self.handle = handle

    def poll(self):
        code = self.handle.poll()
        return JobReturnCode.SUCCESS if code == JobReturnCode.EXECUTION_ERROR else code

    def wait(self):
        self.handle.wait()

    def terminate(self):
        self.handle.terminate()
