"""Makes a federation of three machines, whose clients have started."""

import apart
import pytest

from pipelines.federation.network.client import LOCAL


@pytest.fixture(scope="module")
def _apart(_checkout, tmp_path_factory) -> apart.Apart:
    return apart.made(_checkout, tmp_path_factory.mktemp("apart"))


@pytest.fixture
def federation(_apart, tmp_path, monkeypatch):
    """Returns a federation in copies of its folders, of which the server's is entered."""
    # this import needs NVFlare
    from joint_federation import Federation

    monkeypatch.delenv("FEDLENS_LEDGERS", raising=False)
    monkeypatch.delenv(LOCAL, raising=False)
    copied = apart.copied(_apart, tmp_path)
    monkeypatch.chdir(copied.server.path)
    return Federation(copied, monkeypatch)
