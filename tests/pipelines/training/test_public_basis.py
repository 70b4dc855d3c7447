"""Tests the stored basis and its hash."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from project import ROOT

from models import scattering_basis
from pipelines.errors import UserError
from pipelines.training import public_basis

SHAPE = (8, 8, 1)
HASH = (
    "from pipelines.training.public_basis import stored_basis; "
    "print(stored_basis((8, 8, 1)).sha256)"
)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Makes bases of few noise images, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scattering_basis, "IMAGES", 200)
    monkeypatch.setattr(scattering_basis.make, "__defaults__", (200, iter))
    return tmp_path


@pytest.mark.slow
def test_two_fresh_processes_make_the_same_file(tmp_path):
    hashes = []
    for name, threads in (("one", "1"), ("other", "2")):
        place = tmp_path / name
        place.mkdir()
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", HASH],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        hashes.append(done.stdout.strip())
        (file,) = (place / ".scratch/bases").iterdir()
        assert file.name == "scattering-8x8x1-1.safetensors"
        assert hashlib.sha256(file.read_bytes()).hexdigest() == hashes[-1]
    assert hashes[0] == hashes[1] and len(hashes[0]) == 64


def test_a_stored_basis_is_read_and_not_made_again(small, monkeypatch):
    stored = public_basis.stored_basis(SHAPE)
    monkeypatch.setattr(scattering_basis, "make", lambda *_, **__: pytest.fail("made again"))
    again = public_basis.stored_basis(SHAPE)
    assert again.sha256 == stored.sha256
    for a, b in zip(stored.basis, again.basis):
        np.testing.assert_array_equal(a, b)


def test_a_command_that_writes_nothing_makes_the_same_basis_once(small, monkeypatch):
    with public_basis.storing_nothing():
        first = public_basis.stored_basis(SHAPE)
        with monkeypatch.context() as patch:
            patch.setattr(scattering_basis, "make", lambda *_, **__: pytest.fail("made again"))
            assert public_basis.stored_basis(SHAPE) is first
    assert not (small / ".scratch").exists()
    assert public_basis.stored_basis(SHAPE).sha256 == first.sha256


@pytest.mark.parametrize("damage", [b"", b"no basis", None])
def test_a_damaged_basis_is_made_again(small, damage):
    stored = public_basis.stored_basis(SHAPE)
    (file,) = (small / ".scratch/bases").iterdir()
    file.write_bytes(file.read_bytes()[:-9] if damage is None else damage)
    assert public_basis.stored_basis(SHAPE).sha256 == stored.sha256
    assert list((small / ".scratch/bases").iterdir()) == [file]


def test_a_folder_that_cannot_be_written_is_one_sentence(small):
    (small / ".scratch").write_text("no folder")
    with pytest.raises(UserError, match="Could not write"):
        public_basis.stored_basis(SHAPE)
