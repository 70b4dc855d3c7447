"""Makes a small container of records for the tests of its writer and of its reader."""

from pathlib import Path

import pytest

from pipelines.datasets.labelled_images import Images
from pipelines.synthesis.base import Space


@pytest.fixture
def data(records) -> Images:
    """Returns twelve records of three classes."""
    return records(12, Space(8, 8, 1, 3))


@pytest.fixture
def path(tmp_path, data) -> Path:
    """Returns the container that holds them."""
    data.save(tmp_path / "a.npz")
    return tmp_path / "a.npz"
