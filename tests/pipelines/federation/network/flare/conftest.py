"""For tests over a real network: a project, and the proof that nothing of it is left running."""

import pytest


@pytest.fixture(scope="module")
def project(_checkout, tmp_path_factory):
    import network  # needs NVFlare

    return network.exported(_checkout, tmp_path_factory.mktemp("flare") / "fedlens")


@pytest.fixture
def inside(project, monkeypatch):
    """In the project's folder; afterwards nothing that was started there is left."""
    import network

    monkeypatch.chdir(project.path)
    yield
    assert not network.left_in(project)
