"""Makes a project for tests over a real network, and checks that nothing of it is left running."""

import pytest


@pytest.fixture(scope="module")
def project(_checkout, tmp_path_factory):
    # This import needs NVFlare.
    import network

    return network.exported(_checkout, tmp_path_factory.mktemp("flare") / "fedlens")


@pytest.fixture
def inside(project, monkeypatch):
    """Enters the project's folder. Afterwards nothing that was started there may be left."""
    import network

    monkeypatch.chdir(project.path)
    yield
    assert not network.left_in(project)
