"""Listens to the deviations of noise that an estimate is told."""

import pytest

from pipelines.synthesis import dp_moments


def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, ...]]:
    """Returns a list that has, for each later estimate of `dp_moments`, those of its sums."""
    heard = []
    state_of = dp_moments.state_of

    def telling(plan, sigmas, released):
        heard.append(sigmas)
        return state_of(plan, sigmas, released)

    monkeypatch.setattr(dp_moments, "state_of", telling)
    return heard
