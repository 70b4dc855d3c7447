"""Says which stage of how many is looked at, and about how long the rest takes."""

import time
from collections.abc import Callable

# seconds below which no time is named
PATIENCE = 20


class Progress:
    """Counts the stages that are looked at, and times those that run.

    Args:
        names: The names of all stages.
        jobs: How many run at a time.
        clock: Returns seconds.
    """

    def __init__(
        self, names: list[str], jobs: int = 1, clock: Callable[[], float] = time.monotonic
    ):
        self.jobs = jobs
        self.clock = clock
        self.count = len(names)
        self.seen = 0
        # those that have not ended
        self.open = list(names)
        self.began: dict[str, float] = {}
        self.seconds: dict[str, list[float]] = {}

    def look(self) -> None:
        """Notes that one more stage is looked at; it may turn out to have nothing to do."""
        self.seen += 1

    def start(self, name: str) -> str:
        """Notes that a stage runs, and returns the line that announces it."""
        self.began[name] = self.clock()
        left = self.left()
        about = f", {_duration(left)} left" if left >= PATIENCE else ""
        return f"[{self.seen}/{self.count}] {name}{about}"

    def end(self, name: str) -> None:
        """Notes that a stage has ended, whether it ran or had nothing to do."""
        self.open.remove(name)
        if name in self.began:
            self.seconds.setdefault(_kind(name), []).append(self.clock() - self.began[name])

    def left(self) -> float:
        """Returns about how many seconds the stages still take, 0 if nothing is known.

        A stage takes the mean of its kind, or of all kinds so far. Of those that are still to come
        as many run as did so far, `jobs` at a time.
        """
        ran = [value for values in self.seconds.values() for value in values]
        if not ran:
            return 0.0
        everything = sum(ran) / len(ran)
        total = 0.0
        for name in self.open:
            known = self.seconds.get(_kind(name))
            total += sum(known) / len(known) if known else everything
        return total * len(ran) / (self.count - len(self.open)) / self.jobs


def _kind(name: str) -> str:
    return name.partition("@")[0]


def _duration(seconds: float) -> str:
    """Returns a duration in words.

    >>> _duration(40), _duration(130)
    ('about 40 s', 'about 2 min')
    """
    if seconds < 90:
        return f"about {round(seconds, -1):.0f} s"
    return f"about {seconds / 60:.0f} min"
