"""Makes federations of machines, whose clients have started."""

import apart
import pytest

from pipelines.config.generators import JOINT
from pipelines.federation.network.client import LOCAL


@pytest.fixture(scope="module")
def _apart(_checkout, tmp_path_factory) -> apart.Apart:
    return apart.made(_checkout, tmp_path_factory.mktemp("apart"))


@pytest.fixture(scope="module")
def _four_apart(_checkout, tmp_path_factory) -> apart.Apart:
    made = apart.made(_checkout, tmp_path_factory.mktemp("four"), ("c0", "c1", "c2", "c3"))
    made.edit(_one_may_drop)
    return made


def _one_may_drop(params: dict) -> None:
    for generator in JOINT:
        params["synthesis"][generator].update(colluding=1, may_drop=1)


@pytest.fixture
def federation(_apart, tmp_path, monkeypatch):
    """Returns a federation in copies of its folders, of which the server's is entered."""
    return _entered(_apart, tmp_path, monkeypatch)


@pytest.fixture
def four(_four_apart, tmp_path, monkeypatch):
    """Returns such a federation of four clients, of whom one may drop out."""
    return _entered(_four_apart, tmp_path, monkeypatch)


def _entered(made: apart.Apart, tmp_path, monkeypatch):
    # this import needs NVFlare
    from joint_federation import Federation

    monkeypatch.delenv("FEDLENS_LEDGERS", raising=False)
    monkeypatch.delenv(LOCAL, raising=False)
    copied = apart.copied(made, tmp_path)
    monkeypatch.chdir(copied.server.path)
    return Federation(copied, monkeypatch)
