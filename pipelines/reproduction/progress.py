"""Says which stage of how many is looked at, and about how long the rest takes."""

import time
from collections.abc import Callable

# seconds below which no time is named
PATIENCE = 20


class Progress:
    """Counts the stages that are looked at, and times those that run.

    Args:
        names: The names of all stages, in the order in which they are looked at.
        clock: Returns seconds.
        tell: Prints a line.
    """

    def __init__(
        self,
        names: list[str],
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = print,
    ):
        self.names = names
        self.clock = clock
        self.tell = tell
        self.seen = 0
        self.seconds: dict[str, list[float]] = {}
        self.began = 0.0

    def look(self, name: str) -> None:
        """Notes that a stage is looked at; it may turn out to have nothing to do."""
        self.seen = self.names.index(name) + 1

    def start(self, name: str) -> None:
        """Announces a stage that runs."""
        left = self.left()
        about = f", {_duration(left)} left" if left >= PATIENCE else ""
        self.tell(f"[{self.seen}/{len(self.names)}] {name}{about}")
        self.began = self.clock()

    def end(self, name: str) -> None:
        """Notes what a stage took."""
        self.seconds.setdefault(_kind(name), []).append(self.clock() - self.began)

    def left(self) -> float:
        """Returns about how many seconds the stages from this one on take, 0 if nothing is known.

        A stage takes the mean of its kind, or of all kinds so far. Of those that are still to come
        as many run as did so far.
        """
        ran = [value for values in self.seconds.values() for value in values]
        if not ran:
            return 0.0
        everything = sum(ran) / len(ran)
        total = 0.0
        for name in self.names[self.seen - 1 :]:
            known = self.seconds.get(_kind(name))
            total += sum(known) / len(known) if known else everything
        return total * min(1.0, len(ran) / max(1, self.seen - 1))


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
