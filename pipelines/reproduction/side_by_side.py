"""Runs stages at the same time that do not need each other.

DVC takes the stages of its plan one by one. Here several threads take them, each stage after those
that it needs. DVC is made for one thread: whoever uses it holds the `Turn`, and gives it away while
its stage runs as a process of its own. So the stages overlap, and DVC's work does not.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Set

MOST = 4
# of memory for a stage: most take one, and datalens with all its teachers 3.6
GIBIBYTES = 4


def usual_jobs() -> int:
    """Returns how many stages run at a time: one per core and as memory allows, `MOST` at most.

    The sums of a stage take one thread.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return max(1, min(MOST, len(os.sched_getaffinity(0)), int(memory / GIBIBYTES)))


class Turn:
    """Says which thread uses DVC.

    Args:
        lock: DVC's lock of the project, with `lock` and `unlock`. The thread whose turn it is holds
            it, but for the moments in which DVC starts a stage and comes back from it. Between
            two turns nobody holds it, as DVC does while a stage runs.
    """

    def __init__(self, lock):
        self.lock = lock
        self.free = threading.Condition()

    def __enter__(self) -> None:
        self.free.acquire()
        try:
            self.lock.lock()
        except BaseException:
            self.free.release()
            raise

    def __exit__(self, *error: object) -> None:
        try:
            self.lock.unlock()
        finally:
            self.free.notify_all()
            self.free.release()

    def wait(self) -> None:
        """Gives the turn away until another thread gave it back."""
        self.lock.unlock()
        try:
            self.free.wait()
        finally:
            self.lock.lock()

    @contextlib.contextmanager
    def given_away(self) -> Iterator[None]:
        """Gives the turn away for the block. DVC has freed its own lock before."""
        self.free.release()
        try:
            yield
        finally:
            self.free.acquire()


class Queue:
    """Holds stages that wait for others.

    Args:
        needs: {stage: the stages that must end before it}, in the order of the plan. Those that are
            not in the plan count as ended.
    """

    def __init__(self, needs: Mapping[Hashable, Set[Hashable]]):
        self.needs = {stage: set(needed) & set(needs) for stage, needed in needs.items()}
        self.running: set[Hashable] = set()
        self.ended: set[Hashable] = set()

    def __bool__(self) -> bool:
        return bool(self.needs)

    def take(self) -> Hashable | None:
        """Removes the first stage that needs only ended ones, and returns it; None: none does yet.

        Raises:
            RuntimeError: None ever will, because stages need each other.
        """
        for stage, needed in self.needs.items():
            if needed <= self.ended:
                del self.needs[stage]
                self.running.add(stage)
                return stage
        if not self.running:
            raise RuntimeError(f"Stages wait for each other: {', '.join(map(str, self.needs))}.")
        return None

    def end(self, stage: Hashable) -> None:
        """Notes that a stage has ended."""
        self.running.remove(stage)
        self.ended.add(stage)


def run(
    needs: Mapping[Hashable, Set[Hashable]],
    work: Callable[[Hashable], None],
    jobs: int,
    turn: Turn,
) -> None:
    """Does the work of each stage, of at most `jobs` at a time.

    After an error, or Ctrl-C, no other stage begins, and those that run come to their end.

    Args:
        needs: {stage: the stages that must end before it}, in the order of the plan.
        work: What is done of a stage. The thread whose turn it is calls it.
        jobs: The number of threads.
        turn: Held by nobody.

    Raises:
        Exception: The first that `work` or DVC's lock raised.
        KeyboardInterrupt: Ctrl-C was pressed, and no stage said so.
    """
    queue = Queue(needs)
    troubles: list[BaseException] = []

    def take_and_work() -> None:
        while queue and not troubles:
            stage = queue.take()
            if stage is None:
                turn.wait()
                continue
            try:
                work(stage)
            finally:
                queue.end(stage)
                turn.free.notify_all()

    def noting(action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException as trouble:
            troubles.append(trouble)

    def thread() -> None:
        with turn:
            # noted before the turn is given back, so that nobody begins another
            noting(take_and_work)

    threads = [threading.Thread(target=noting, args=(thread,)) for _ in range(jobs)]
    with _interrupts(lambda: troubles.append(KeyboardInterrupt())):
        for started in threads:
            started.start()
        for started in threads:
            started.join()
    # a stage that Ctrl-C ended says so better
    said = [trouble for trouble in troubles if not isinstance(trouble, KeyboardInterrupt)]
    for trouble in said or troubles:
        raise trouble


@contextlib.contextmanager
def _interrupts(note: Callable[[], None]) -> Iterator[None]:
    """Calls a function on Ctrl-C, which also reaches the stages."""
    before = signal.signal(signal.SIGINT, lambda *_: note())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
