"""Makes one run after the other as `make repro` does, and restores the parameter files.

`dvc exp run` alone has one stage at a time. So the stages are made first, as many at a time as the
cores allow, and `dvc exp run` then finds nothing to do but to note the experiment.

`--queue` and `--temp` are not used. They run in a copy of what Git tracks, which has neither the
raw images nor the ledgers. A release made there would not be entered here.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.parameters import arguments
from experiments.plans import Run
from pipelines.config.places import all_files
from pipelines.errors import UserError
from pipelines.files import write_text
from pipelines.paths import SCRATCH

DVC = [sys.executable, "-m", "dvc"]
REPRODUCTION = [sys.executable, "-m", "pipelines.reproduction"]
# the line before each stage
STAGE = re.compile(r"\[\d+/\d+\] ([^,\n]+)")
LOGS = SCRATCH / "experiments"


def check_committed() -> None:
    """Refuses to start if a parameter file differs from its committed version.

    Raises:
        UserError: A parameter file has changes that are not committed, or there is no Git
            repository.
    """
    done = subprocess.run(
        ["git", "status", "--porcelain", "--", *_files()], capture_output=True, text=True
    )
    if done.returncode:
        raise UserError(f"An experiment needs the project's Git repository: {done.stderr.strip()}.")
    if done.stdout:
        changed = ", ".join(line[3:] for line in done.stdout.splitlines())
        raise UserError(
            f"{changed} has changes that are not committed: "
            "commit them, or undo them, before an experiment."
        )


@contextmanager
def restored() -> Iterator[None]:
    """Restores all parameter files after its block, whatever happens within.

    DVC stages its changes, and leaves them staged when it is killed. They are unstaged, too, or
    the next experiment would take them for the user's.
    """
    before = {path: path.read_text() for path in _files()}
    try:
        yield
    finally:
        for path, text in before.items():
            write_text(path, text)
        subprocess.run(["git", "restore", "--staged", "--", *before], capture_output=True)


def _files() -> list[Path]:
    return [path for path in all_files(Path()) if path.exists()]


def reproduce(name: str, run: Run, show: Callable[[str], None]) -> None:
    """Makes a run as a DVC experiment, in place of an earlier one of that name.

    The run's overrides stay in the parameter files.

    Args:
        name: Name of the experiment.
        run: What to run, and with which overrides.
        show: Is called with the name of each stage that begins.

    Raises:
        UserError: DVC or one of its stages failed. The sentence names the file with all output.
        KeyboardInterrupt: The run was interrupted, and DVC has ended.
    """
    environment = _environment()
    # DVC refuses this command if there is no such experiment, which is no error here.
    subprocess.run([*DVC, "exp", "remove", name], capture_output=True, env=environment)
    words = arguments(run.overrides)
    _override(words)
    log = LOGS / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:

        def write_line(line: str) -> None:
            file.write(line)
            if begun := STAGE.match(line):
                show(begun[1])

        code = _run([*REPRODUCTION, *run.targets], environment, write_line)
        if not code:
            noting = [*DVC, "exp", "run", "--name", name, *words, *run.targets]
            code = _run(noting, environment, write_line)
    if code:
        raise UserError(
            f"{name} failed: {_complaint(log.read_text())} All that was said is in {log}."
        )


def _override(words: list[str]) -> None:
    """Changes the parameter files as `dvc exp run` does.

    Args:
        words: Arguments of that command, `-S` before each override.
    """
    # takes a second to import, which a refusal need not wait for
    from dvc.utils.cli_parse import to_path_overrides
    from dvc.utils.hydra import apply_overrides

    for path, overrides in to_path_overrides(words[1::2]).items():
        apply_overrides(path, overrides)


def _environment() -> dict[str, str]:
    """Returns the environment of DVC: with this Python's commands, and output without delay."""
    folder = Path(sys.executable).parent
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"}


def _run(command: list[str], environment: dict, write_line: Callable[[str], None]) -> int:
    """Runs a command, passes its output on line by line, and returns its exit status.

    The command has a session of its own, so that an interruption reaches it once, from here.
    """
    options = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
        "errors": "replace",
    }
    with subprocess.Popen(command, env=environment, start_new_session=True, **options) as child:
        try:
            for line in child.stdout:
                write_line(line)
            return child.wait()
        except KeyboardInterrupt:
            os.killpg(child.pid, signal.SIGINT)
            write_line(child.communicate()[0])
            raise


def _complaint(output: str) -> str:
    """Returns the stage's own sentence if there is one, otherwise DVC's."""
    lines = [line.strip() for line in output.splitlines()]
    for mark in ("Error: ", "ERROR: "):
        for line in lines:
            if line.startswith(mark):
                return line.removeprefix(mark)
    return "it said nothing of why."
