"""Enters the project that a module's tests have made."""

from pathlib import Path

import pytest


@pytest.fixture
def inside(made: Path, monkeypatch) -> Path:
    """Returns the folder of the module's fixture `made`, which is the working directory now."""
    monkeypatch.chdir(made)
    return made
