"""Makes releases to enter in a ledger, and makes its writer fail in each possible way."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Ledger, LedgerError, Release, chain, durable

DELTA = 1e-5
CALLS = ("open", "write", "fsync", "ftruncate", "truncate", "replace", "close")


def release(
    epsilon=1.0, data="d", delta=DELTA, mechanism="dp_moments", cost=None, **parameters
) -> Release:
    mu = Budget(epsilon, delta).mu
    return Release(
        mechanism=mechanism,
        version=1,
        parameters=parameters,
        data=data,
        cost=cost or {"kind": "gaussian", "mu": mu},
        statement={"epsilon": epsilon, "delta": delta, "mu": mu, "guarantee": "formal"},
    )


def check_sound(path: Path, acknowledged: list[dict]) -> None:
    """Checks what must hold after any failures: the chain can be read and holds what it confirmed,
    takes the next line, and still shows a cut.
    """
    ledger = Ledger(path, delta=DELTA)
    assert ledger.entries()[: len(acknowledged)] == acknowledged
    with watching(lambda _, name, call, arguments: call(*arguments)):
        assert ledger.open(release(seed="next")) == "new"
    entries = ledger.entries()
    assert entries[: len(acknowledged)] == acknowledged
    assert entries[-1]["fingerprint"] == release(seed="next").fingerprint
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    try:
        ledger.entries()
    except LedgerError:
        path.write_bytes(whole)
        return
    raise AssertionError("A cut tail was not noticed.")


class Watched:
    """Stands for the module `os`.

    Each call that concerns files goes through `act(number, name, call, arguments)`.
    """

    def __init__(self, act: Callable):
        self.act = act
        self.count = 0

    def __getattr__(self, name: str):
        call = getattr(os, name)
        if name not in CALLS:
            return call

        def watched(*arguments):
            self.count += 1
            return self.act(self.count, name, _unflushed if name == "fsync" else call, arguments)

        return watched


def _unflushed(file: int) -> None:
    """Does nothing.

    A process that dies takes nothing with it that the system holds, and flushing is the slow part
    of these tests.
    """


@contextmanager
def watching(act: Callable) -> Iterator[None]:
    """Sends the ledger's own calls of `os` through `act` within its block."""
    watched = Watched(act)
    durable.os = chain.os = watched
    try:
        yield
    finally:
        durable.os = chain.os = os


def calls_of(action: Callable[[], object]) -> list[tuple[str, tuple]]:
    """Returns (name, arguments) of each call that the action makes."""
    seen = []

    def note(_, name, call, arguments):
        seen.append((name, arguments))
        return call(*arguments)

    with watching(note):
        action()
    return seen


def killed(action: Callable[[], object], at: int, half: bool) -> None:
    """Runs the action in a process that dies before its call number `at`.

    With `half`, it dies after half of that call's bytes.
    """

    def act(number, name, call, arguments):
        if number < at:
            return call(*arguments)
        if half:
            file, content = arguments
            os.write(file, content[: len(content) // 2])
        os._exit(9)

    child = os.fork()
    if child == 0:
        try:
            with watching(act):
                action()
        except BaseException:
            os._exit(1)
        # It dies after its last call, before it can say so.
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def on_a_full_disk(action: Callable[[], object], at: int, half: bool) -> None:
    """Runs the action on a disk that is full from its call number `at`, or from the middle of that
    call.
    """

    def act(number, name, call, arguments):
        if number < at or name == "close":
            return call(*arguments)
        if half and number == at:
            file, content = arguments
            return os.write(file, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with watching(act):
        try:
            action()
        except OSError as error:
            assert error.errno == errno.ENOSPC
