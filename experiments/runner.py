"""One run after the other through `dvc exp run` in the workspace, params.yaml put back after each.

Not `--queue` and not `--temp`: those run in a copy of what Git knows, without the raw images and the ledgers, and a
release made there would not be entered here.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.parameters import arguments
from experiments.plans import Run
from pipelines.errors import UserError
from pipelines.files import write_text
from pipelines.paths import SCRATCH

DVC = [sys.executable, "-m", "dvc"]
PARAMS = Path("params.yaml")
LOGS = SCRATCH / "experiments"


def check_committed() -> None:
    """
    Raises:
        UserError: params.yaml has changes that are not committed, or there is no Git repository.
    """
    done = subprocess.run(
        ["git", "status", "--porcelain", "--", PARAMS], capture_output=True, text=True
    )
    if done.returncode:
        raise UserError(f"An experiment needs the project's Git repository: {done.stderr.strip()}.")
    if done.stdout:
        raise UserError(
            f"{PARAMS} has changes that are not committed: commit them, or undo them, before an experiment."
        )


@contextmanager
def restored() -> Iterator[None]:
    """params.yaml is afterwards what it was, whatever happens within. DVC stages its changes, and leaves them staged
    when it is killed: the next experiment would take them for the user's."""
    before = PARAMS.read_text()
    try:
        yield
    finally:
        write_text(PARAMS, before)
        subprocess.run(["git", "restore", "--staged", "--", PARAMS], capture_output=True)


def reproduce(name: str, run: Run, show: Callable[[str], None]) -> None:
    """Runs it as DVC's experiment `name`, in place of an earlier one of that name; its overrides stay in params.yaml.

    Args:
        show: told the name of each stage that begins.

    Raises:
        UserError: DVC or one of its stages failed; all they said is in a file that the sentence names.
        KeyboardInterrupt: DVC was told, and has ended.
    """
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    environment["PYTHONUNBUFFERED"] = "1"  # or its lines come when it has ended
    subprocess.run(
        [*DVC, "exp", "remove", name], capture_output=True, env=environment
    )  # refused where there is none
    command = [*DVC, "exp", "run", "--name", name, *arguments(run.overrides), *run.targets]
    log = LOGS / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as kept:

        def heard(line: str) -> None:
            kept.write(line)
            if line.startswith("Running stage"):
                show(line.split("'")[1])

        code = _followed(command, environment, heard)
    if code:
        raise UserError(
            f"{name} failed: {_complaint(log.read_text())} All that was said is in {log}."
        )


def _followed(command: list[str], environment: dict, heard: Callable[[str], None]) -> int:
    """The exit status. The command has a session of its own, so that an interruption reaches it once, and from us."""
    piped = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
        "errors": "replace",
    }
    with subprocess.Popen(command, env=environment, start_new_session=True, **piped) as child:
        try:
            for line in child.stdout:
                heard(line)
            return child.wait()
        except KeyboardInterrupt:
            os.killpg(child.pid, signal.SIGINT)
            heard(child.communicate()[0])
            raise


def _complaint(said: str) -> str:
    """The stage's own sentence where there is one, else DVC's."""
    lines = [line.strip() for line in said.splitlines()]
    found = [line for mark in ("Error: ", "ERROR: ") for line in lines if line.startswith(mark)]
    return found[0].partition(": ")[2] if found else "it said nothing of why."
