"""Tests that votes are released once, whatever happens in between.

Checkpoints are whole or absent.
"""

import os
import stat

import numpy as np
import pytest

from pipelines.errors import UserError
from pipelines.synthesis.datalens import journal
from pipelines.synthesis.datalens.journal import Journal

SHAPE = (2, 3)


def votes(step: int) -> np.ndarray:
    return np.random.default_rng(step).normal(size=SHAPE).round(2)


def never():
    raise AssertionError("released twice")


@pytest.fixture
def folder(tmp_path):
    """Makes a journal with three steps released."""
    path = tmp_path / "unfinished"
    book = Journal(path, SHAPE)
    for step in range(3):
        book.once(step, lambda step=step: votes(step))
    return path


def test_released_votes_come_back_bit_for_bit_and_are_not_drawn_again(folder):
    book = Journal(folder, SHAPE)
    assert len(book.released) == 3
    for step in range(3):
        np.testing.assert_array_equal(book.once(step, never), votes(step))
    np.testing.assert_array_equal(book.once(3, lambda: votes(3)), votes(3))
    assert len(Journal(folder, SHAPE).released) == 4


def test_votes_are_on_disk_before_they_are_used(folder, monkeypatch):
    """A crash while they are made sure of leaves them unused."""
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    book = Journal(folder, SHAPE)
    with pytest.raises(KeyboardInterrupt):
        book.once(3, lambda: votes(3))
    assert len(book.released) == 3


@pytest.mark.parametrize("lost", [1, 10, 63])
def test_a_record_cut_off_while_being_written_is_dropped_and_no_other(folder, lost):
    path = folder / "votes"
    os.truncate(path, path.stat().st_size - lost)
    assert len(Journal(folder, SHAPE).released) == 2
    assert path.stat().st_size == 2 * (8 * 6 + journal.DIGEST)


@pytest.mark.parametrize("place, kept", [(-1, 2), (-60, 2), (3, None), (70, None)])
def test_damage_to_votes_that_were_used_is_refused(folder, place, kept):
    content = bytearray((folder / "votes").read_bytes())
    content[place] ^= 1
    (folder / "votes").write_bytes(content)
    if kept is not None:  # the last record: it may have been under way
        assert len(Journal(folder, SHAPE).released) == kept
        return
    with pytest.raises(UserError, match=r"is damaged at step \d\. Bring it back"):
        Journal(folder, SHAPE)


def test_records_do_not_change_places(folder):
    content = (folder / "votes").read_bytes()
    length = len(content) // 3
    (folder / "votes").write_bytes(
        content[length : 2 * length] + content[:length] + content[2 * length :]
    )
    with pytest.raises(UserError, match="damaged at step 0"):
        Journal(folder, SHAPE)


class Counter:
    def __init__(self, value=0):
        self.value = value

    def save(self, folder):
        (folder / "counter").write_text(str(self.value))

    def load(self, folder):
        self.value = int((folder / "counter").read_text())


def test_the_last_checkpoint_replaces_the_one_before(folder, monkeypatch):
    monkeypatch.setattr(journal, "EVERY", 2)
    book = Journal(folder, SHAPE)
    assert book.resumed(Counter()) == 0
    for steps in range(1, 6):
        book.checkpoint(steps, Counter(steps))
    again = Counter()
    assert Journal(folder, SHAPE).resumed(again) == 4 and again.value == 4
    assert sorted(path.name for path in folder.iterdir()) == ["after-4", "votes"]


def test_a_checkpoint_that_was_cut_off_is_none(folder, monkeypatch):
    monkeypatch.setattr(journal, "EVERY", 1)

    class Dying(Counter):
        def save(self, folder):
            super().save(folder)
            raise KeyboardInterrupt

    book = Journal(folder, SHAPE)
    book.checkpoint(1, Counter(1))
    with pytest.raises(KeyboardInterrupt):
        book.checkpoint(2, Dying(2))
    again = Counter()
    assert Journal(folder, SHAPE).resumed(again) == 1 and again.value == 1


def test_a_checkpoint_that_cannot_be_read_is_named(folder, monkeypatch):
    monkeypatch.setattr(journal, "EVERY", 1)
    book = Journal(folder, SHAPE)
    book.checkpoint(1, Counter(1))
    (folder / "after-1/counter").write_text("x")
    with pytest.raises(UserError, match=r"after-1 cannot be read .* Remove it"):
        Journal(folder, SHAPE).resumed(Counter())


def test_the_folder_is_its_owner_s_alone_and_without_one_nothing_is_kept(folder, tmp_path):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    book = Journal(None, SHAPE)
    book.once(0, lambda: votes(0))
    book.checkpoint(journal.EVERY, Counter())
    assert book.resumed(Counter()) == 0
    assert list(tmp_path.iterdir()) == [folder]
