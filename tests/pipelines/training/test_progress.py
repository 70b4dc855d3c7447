"""A bar shows a loop's loss in a terminal, and says nothing elsewhere."""

import io

import torch

from pipelines.training import progress
from pipelines.training.progress import Steps


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(monkeypatch, screen: io.StringIO, *, every: int = 1, patience: float = 0.0) -> list[int]:
    # in the test itself: pytest puts its own stream in place after the fixtures
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    steps = Steps(range(4), "a loop", every=every)
    gone = []
    for step in steps:
        gone.append(step)
        steps.tell(torch.tensor(step / 4))
        if not patience:
            steps.bar.refresh()
    return gone


def test_a_terminal_shows_the_last_loss(monkeypatch):
    screen = Terminal()
    assert run(monkeypatch, screen) == [0, 1, 2, 3]
    assert "a loop" in screen.getvalue() and "loss 0.750" in screen.getvalue()


def test_a_loss_is_read_every_so_many_steps_alone(monkeypatch):
    screen = Terminal()
    run(monkeypatch, screen, every=2)
    assert "loss 0.250" in screen.getvalue() and "loss 0.500" not in screen.getvalue()


def test_a_log_has_no_bar(monkeypatch):
    log = io.StringIO()
    assert run(monkeypatch, log) == [0, 1, 2, 3]
    assert log.getvalue() == ""


def test_a_short_loop_has_no_bar(monkeypatch):
    screen = Terminal()
    assert run(monkeypatch, screen, patience=60.0) == [0, 1, 2, 3]
    assert "loop" not in screen.getvalue()
