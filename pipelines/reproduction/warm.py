"""Starts stages from a process that has already loaded what they use of other projects.

Most of a small stage is the start of a Python with torch. Here DVC's process loads a library when
the first stage needs it, and each stage is a fork of that process. Modules of this project are
loaded anew in each fork, so that a stage runs the code that lies on disk, as in a fresh process.

A fork has its own memory, and the environment that DVC gives. **The source of privacy noise is
never loaded here**: two forks of one state could draw the same noise. Each stage loads it itself
(`can_fork`).
"""

import importlib
import os
import runpy
import shlex
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager

from pipelines.reproduction.blocks import FORKING, Ends

# {stage: what it loads of other projects before its work}; others start as they are
LIBRARIES = {
    "check_quality": ("torch", "torch._dynamo", "torch_fidelity", "sklearn.linear_model"),
    "meta_train": ("torch", "torch._dynamo", "learn2learn"),
    "fine_tune": ("torch", "torch._dynamo"),
    "train_alone": ("torch", "torch._dynamo"),
    "train_baseline": ("torch", "torch._dynamo"),
    "train_dp_baseline": ("torch", "torch._dynamo"),
    "new_clients": ("torch", "torch._dynamo"),
}
OURS = ("models", "pipelines", "stages")


# what privacy noise is drawn by
NOISE = "opendp"
INTERRUPT = {signal.SIGINT}


def can_fork() -> bool:
    """Returns whether stages may be forks of this process, asked before any thread is started.

    Not where it has loaded the source of noise, and not where another thread asks than the main one.
    """
    alone = threading.current_thread() is threading.main_thread()
    return hasattr(os, "fork") and alone and NOISE not in sys.modules


def stage_of(command: object) -> list[str] | None:
    """Returns the module of a stage and its arguments, or None if a command is no plain stage.

    Args:
        command: Of DVC: a text, a list of texts, or None where a stage has none.

    >>> stage_of("python -m stages.report --dataset digits")
    ['stages.report', '--dataset', 'digits']
    >>> stage_of("python -m stages.report && true")
    """
    if not isinstance(command, str):
        return None
    words = shlex.split(command, comments=True)
    plain = not set(command) & set("&|;<>`$\n")
    is_module = len(words) > 2 and words[:2] == ["python", "-m"]
    if plain and is_module and words[2].startswith("stages."):
        return words[2:]
    return None


def run(
    command: list[str],
    environment: dict[str, str],
    folder: str,
    say: Callable[[int, bytes], None],
    meanwhile: AbstractContextManager,
) -> int:
    """Runs a stage in a fork of this process, and returns its exit status.

    Args:
        command: The stage's module and its arguments.
        environment: Of the stage.
        folder: In which it runs.
        say: Takes what the stage prints, and on which stream.
        meanwhile: Is entered while the stage runs.
    """
    module, *arguments = command
    for library in LIBRARIES.get(module.removeprefix("stages."), ()):
        importlib.import_module(library)
    if NOISE in sys.modules:
        raise RuntimeError(f"A library loads {NOISE}, whose noise two stages must not share.")
    sys.stdout.flush()
    sys.stderr.flush()
    ends, child = _forked()
    if not child:
        status = 1
        try:
            status = _ended(lambda: _become(ends, module, arguments, environment, folder))
        finally:
            # whatever happens, a child never goes on as a second DVC
            os._exit(status & 0xFF)
    process = _Process(child)
    with meanwhile:
        try:
            for stream, content in ends.parts(process.has_ended):
                say(stream, content)
        finally:
            ends.close_readers()
            process.wait()
    return os.waitstatus_to_exitcode(process.status)


class _Process:
    """Is a child of this process.

    Args:
        number: Its process id.
    """

    def __init__(self, number: int):
        self.number = number
        self.status: int | None = None

    def has_ended(self) -> bool:
        """Returns whether it has ended, without waiting."""
        return self._look(os.WNOHANG)

    def wait(self) -> None:
        """Waits for its end."""
        self._look(0)

    def _look(self, how: int) -> bool:
        if self.status is None:
            number, status = os.waitpid(self.number, how)
            self.status = status if number else None
        return self.status is not None


def _forked() -> tuple[Ends, int]:
    """Forks, and returns the ends of the child's streams, and its process id: 0 in the child.

    Python 3.12 warns of forks of a process with threads. None of the others is in DVC
    (`side_by_side.Turn`): they wait, or pass on what a stage prints, with locks of their own that
    no stage needs. In the child Ctrl-C waits until the stage can take it.
    """
    with FORKING, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        ends = Ends()
        signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)
        child = os.fork()
        if child:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
            ends.close_writers()
    return ends, child


def _become(
    ends: Ends, module: str, arguments: list[str], environment: dict[str, str], folder: str
) -> None:
    """Runs a module as the main one, as `python -m` does, with these streams."""
    ends.take()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    # as `python -m`: the folder of the project comes first
    sys.path[0] = folder
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _ended(work: Callable[[], None]) -> int:
    """Returns the exit status of a main program that does the work, and prints its error."""
    try:
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if status and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # nobody reads any more
            status = status or 1
    return status
