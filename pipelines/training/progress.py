"""Shows how far a loop is and what its loss is, in a terminal, once it has taken some seconds.

A bar writes to a terminal alone, so that a log has none. A loss that a bar shows is one of private
records: it is for who runs the stage, and no file holds it.
"""

from collections.abc import Iterable

import torch
from tqdm import tqdm

# seconds before a bar appears
PATIENCE = 3.0


class Steps:
    """Goes through the steps of a training loop, and shows the loss that each is told.

    >>> steps = Steps(range(3), "pooled", 3)
    >>> for step in steps:
    ...     steps.tell(torch.tensor(0.5))
    """

    def __init__(self, steps: Iterable, name: str, total: int | None = None, *, every: int = 1):
        """
        Args:
            steps: What the loop goes through.
            name: What the bar is called.
            total: How many steps there are, where `steps` has no length.
            every: Steps between two losses that are shown: to read one waits for the device.
        """
        self.every = every
        self.taken = 0
        self.bar = tqdm(steps, name, total, disable=None, leave=False, delay=PATIENCE)

    def __iter__(self):
        return iter(self.bar)

    def tell(self, loss: torch.Tensor) -> None:
        """Shows the loss of the step that was just taken."""
        self.taken += 1
        if not self.bar.disable and self.taken % self.every == 0:
            self.bar.set_postfix_str(f"loss {loss.item():.3f}", refresh=False)
