"""A client's launcher of job processes. A process that was killed is the carrier's affair, by `on_loss`: NVFlare's own
launcher reports it to the server, which then fails the whole job, whatever the others do."""

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.job_launcher_spec import JobHandleSpec, JobProcessArgs, JobReturnCode
from nvflare.app_common.job_launcher.client_process_launcher import ClientProcessJobLauncher

from pipelines.federation.network.flare.hardening import narrow
from pipelines.federation.network.flare.names import WORKER

narrow()  # NVFlare imports this, by the client's kit, as the process begins


class Launcher(ClientProcessJobLauncher):
    def launch_job(self, job_meta: dict, fl_ctx) -> JobHandleSpec:
        fl_ctx.get_prop(FLContextKey.JOB_PROCESS_ARGS)[JobProcessArgs.EXE_MODULE] = ("-m", WORKER)
        return _Quiet(super().launch_job(job_meta, fl_ctx))


class _Quiet(JobHandleSpec):
    """Another's handle, which does not tell that its process failed. What NVFlare's runner itself found wrong, such as
    a configuration, it tells by a file, and that stands."""

    def __init__(self, handle: JobHandleSpec):
        self.handle = handle

    def poll(self):
        code = self.handle.poll()
        return JobReturnCode.SUCCESS if code == JobReturnCode.EXECUTION_ERROR else code

    def wait(self):
        self.handle.wait()

    def terminate(self):
        self.handle.terminate()
