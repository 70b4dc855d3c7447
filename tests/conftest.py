"""Makes copies of the working tree as separate projects: one fresh, one after `dvc repro`."""

import gc
import os
import shutil
from pathlib import Path

# This comes before torch is imported. Small networks are many times slower with more threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from project import Project, copy_tree, own_images, tiny
from within import Within


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives a process the tests of one file, or all tests that need the whole run, which is made once.

    Real runs come first: they take longest, and nothing waits for them at the end.
    """
    for item in items:
        group = "built" if "_built" in item.fixturenames else item.path.as_posix()
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item.get_closest_marker("pipeline") is None)


@pytest.fixture(scope="session")
def _checkout(tmp_path_factory) -> Path:
    """Commits the working tree's files as a new repository.

    It has tiny parameters and the canary's images.
    """
    path = tmp_path_factory.mktemp("project") / "fedlens"
    copy_tree(path)
    project = Project(path)
    project.edit(tiny)
    np.savez(path / "raw" / "own.npz", **own_images())
    project.git("init", "-q", "-b", "main")
    # `dvc exp run` commits, and a machine need not know who its user is.
    for name, value in (("user.name", "t"), ("user.email", "t@example.invalid")):
        project.git("config", name, value)
    project.git("add", "-A")
    project.git("commit", "-qm", "start")
    # one file in place of a thousand, for hundreds of tests copy them
    project.git("repack", "-adq")
    return path


@pytest.fixture(scope="session")
def _built(_checkout, tmp_path_factory) -> Path:
    """Copies the checkout and runs one `dvc repro` in it."""
    path = tmp_path_factory.mktemp("built") / "fedlens"
    shutil.copytree(_checkout, path)
    project = Project(path)
    project.repro()
    project.git("add", "dvc.lock")
    project.git("commit", "-qm", "built")
    return path


@pytest.fixture
def checkout(_checkout, tmp_path) -> Project:
    shutil.copytree(_checkout, tmp_path / "fedlens")
    return Project(tmp_path / "fedlens")


@pytest.fixture
def within(checkout) -> Within:
    return Within(checkout.path)


@pytest.fixture
def built(_built, tmp_path) -> Within:
    """Returns a copy of a whole run. Stages that run again run in this process."""
    shutil.copytree(_built, tmp_path / "fedlens", symlinks=True)
    copy = Within(tmp_path / "fedlens")
    # a copy has other inodes: Git takes each file for changed until it has read it again
    copy.git("update-index", "-q", "--refresh")
    return copy


def pytest_collection_finish() -> None:
    """Has the garbage collector skip what was imported, which takes it long with torch and DVC."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)
