"""Runs server and clients as processes of this machine, and ends them whatever happens.

Each works in its own folder and has its own certificate. Processes are ended by their ids.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pipelines.federation.network.flare.kits import set_storage
from pipelines.federation.network.flare.names import HOME

# The folder of this checkout.
ROOT = Path(__file__).resolve().parents[4]
# Seconds between SIGTERM and SIGKILL.
GRACE = 5.0


def command(kit: Path) -> list[str]:
    """Returns the command that runs a kit's participant in the foreground."""
    return ["bash", str((kit / "startup/sub_start.sh").resolve()), "--once"]


def environment(home: Path) -> dict[str, str]:
    """Returns the environment of a participant that works in `home`.

    It has this checkout's code and this Python.
    """
    modules = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, HOME: str(home.resolve()), "PYTHONPATH": modules, "PATH": programs}


class Participant:
    """Starts a participant's process, in a session of its own.

    Args:
        kit: The participant's kit.
        home: The folder in which it works.
        log: The new file for what it prints.
        more: Further variables of its environment.
    """

    def __init__(self, kit: Path, home: Path, log: Path, more: Mapping[str, str]):
        self.name = kit.name
        self.log = log
        set_storage(kit)
        with log.open("w") as output:
            self.process = subprocess.Popen(
                command(kit),
                env={**environment(home), **more},
                start_new_session=True,
                cwd=kit,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def dead(self) -> bool:
        """Returns whether the process has ended."""
        return self.process.poll() is not None


def end(homes: Path) -> None:
    """Ends all processes that work in a folder of `homes`: by SIGTERM first, then by SIGKILL.

    They are found by the environment that they were started with. NVFlare puts job processes into
    sessions of their own, and these outlive a parent that was killed.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + GRACE
        for process in _working_in(homes):
            with suppress(ProcessLookupError):
                os.kill(process, number)
        while _working_in(homes) and time.monotonic() < until:
            time.sleep(0.1)


def _working_in(homes: Path) -> list[int]:
    """Returns the ids of the processes. A zombie has no environment any more, and is left out."""
    mark = f"{HOME}={homes.resolve()}{os.sep}".encode()
    processes = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        # a process may be gone meanwhile, or another user's
        with suppress(OSError):
            if any(line.startswith(mark) for line in file.read_bytes().split(b"\0")):
                processes.append(int(file.parent.name))
    return processes


@contextmanager
def started(
    kits: Path, homes: Mapping[str, Path], logs: Path, more: Mapping[str, str]
) -> Iterator[dict[str, Participant]]:
    """Runs all participants that have a home while the block runs. Then none of them is left.

    Args:
        kits: The folder of all kits.
        homes: {participant: the folder in which it works}.
        logs: The folder for what they print.
        more: Further variables of their environments.

    Yields:
        {participant: its process}.
    """
    logs.mkdir(parents=True, exist_ok=True)
    running: dict[str, Participant] = {}
    with _interruptible():
        try:
            for name, home in homes.items():
                running[name] = Participant(kits / name, home, logs / f"{name}.log", more)
            yield running
        finally:
            # a process that has only just begun cannot be found yet
            while True:
                end(next(iter(homes.values())).parent)
                if all(process.dead for process in running.values()):
                    break


@contextmanager
def _interruptible() -> Iterator[None]:
    """Lets SIGTERM and SIGINT end the block as Ctrl-C does, even if a script has SIGINT ignored.

    Otherwise the processes would be left, because they are in sessions of their own.
    """
    handlers = {}
    for number in (signal.SIGTERM, signal.SIGINT):
        handlers[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def free_ports(count: int) -> tuple[int, ...]:
    """Returns ports that are free on this machine at this moment."""
    ports = []
    with ExitStack() as stack:
        # all stay open together, so that no port comes twice
        for _ in range(count):
            listener = stack.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            ports.append(listener.getsockname()[1])
    return tuple(ports)
