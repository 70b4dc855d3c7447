"""Server and clients as processes of this machine, each in a working folder and with a certificate of its own; ended
by their ids, whatever happens."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pipelines.federation.network.flare.kits import settle
from pipelines.federation.network.flare.names import HOME

ROOT = Path(__file__).resolve().parents[4]  # of this checkout
GRACE = 5.0  # seconds between asking a process to end and ending it


def command(kit: Path) -> list[str]:
    """Runs the kit's participant in the foreground."""
    return ["bash", str((kit / "startup/sub_start.sh").resolve()), "--once"]


def environment(home: Path) -> dict[str, str]:
    """Of a participant that works in `home`: this checkout's code, this Python."""
    modules = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, HOME: str(home.resolve()), "PYTHONPATH": modules, "PATH": programs}


class Started:
    """A participant's process, in a session of its own."""

    def __init__(self, kit: Path, home: Path, log: Path, more: Mapping[str, str]):
        self.name, self.log = kit.name, log
        settle(kit)
        with log.open("w") as said:
            streams = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": subprocess.STDOUT}
            own = {**environment(home), **more}
            self.process = subprocess.Popen(
                command(kit), env=own, start_new_session=True, cwd=kit, **streams
            )

    @property
    def dead(self) -> bool:
        return self.process.poll() is not None


def end(homes: Path) -> None:
    """All processes that work in a folder of `homes`: asked first, then made to. Found by what they were started with:
    NVFlare puts job processes into sessions of their own, and they outlive a parent that was killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + GRACE
        for process in _working_in(homes):
            with suppress(ProcessLookupError):
                os.kill(process, number)
        while _working_in(homes) and time.monotonic() < until:
            time.sleep(0.1)


def _working_in(homes: Path) -> list[int]:
    """Process ids. A zombie has no environment any more, and is none."""
    mark, found = f"{HOME}={homes.resolve()}{os.sep}".encode(), []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # gone meanwhile, or another user's
            if any(line.startswith(mark) for line in file.read_bytes().split(b"\0")):
                found.append(int(file.parent.name))
    return found


@contextmanager
def started(
    kits: Path, homes: Mapping[str, Path], logs: Path, more: Mapping[str, str]
) -> Iterator[dict[str, Started]]:
    """{name: its process}, of all participants that have a home, while the block runs; then none of them is left.

    more: of their environments.
    """
    logs.mkdir(parents=True, exist_ok=True)
    running: dict[str, Started] = {}
    with _interruptible():
        try:
            for name, home in homes.items():
                running[name] = Started(kits / name, home, logs / f"{name}.log", more)
            yield running
        finally:
            while True:  # a process that has only just begun cannot be found yet
                end(next(iter(homes.values())).parent)
                if all(process.dead for process in running.values()):
                    break


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and SIGINT end the block as Ctrl-C does, where a script has SIGINT ignored, too: the processes are in
    sessions of their own and would be left."""
    before = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def free_ports(count: int) -> tuple[int, ...]:
    """Of this machine, at this moment."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for own in sockets:
            own.bind(("127.0.0.1", 0))
        return tuple(own.getsockname()[1] for own in sockets)
