"""The check of raw files tells what DVC cannot read before DVC starts; names reach no terminal raw."""

import contextlib
import os
import socket

import pytest

from pipelines.datasets import raw_files
from pipelines.errors import UserError


@pytest.fixture
def root(tmp_path):
    (tmp_path / "raw/own/a").mkdir(parents=True)
    (tmp_path / "raw/own/a/0.png").write_bytes(b"anything")
    return tmp_path / "raw"


def test_files_folders_and_links_to_them_pass(root):
    (root / "own/a/1.png").symlink_to("0.png")
    (root / "own/a/é.png").write_bytes(b"")
    (root / "own/b").symlink_to("a")
    raw_files.check(root)
    raw_files.check(root / "absent")


def bound(folder, name):
    # from inside the folder, for the whole path of a socket must be shorter than 108 bytes
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(folder):
        made.bind(name)


ODD = {
    "a pipe": lambda at: os.mkfifo(at / "x.png"),
    "a socket": lambda at: bound(at, "x.png"),
    "a link that leads nowhere": lambda at: (at / "x.png").symlink_to("absent"),
    "not UTF-8": lambda at: open(os.fsencode(at) + b"/\xff.png", "wb").close(),
}


@pytest.mark.parametrize("kind", ODD)
def test_what_dvc_waits_for_or_stops_at_is_one_sentence(root, kind):
    ODD[kind](root / "own/a")
    with pytest.raises(UserError) as error:
        raw_files.check(root)
    assert (
        f"DVC cannot read 1 of the names in {root}, each of which is {kind}: {root}/own/a/"
        in str(error.value)
    )
    assert "\n" not in str(error.value)


def test_a_link_in_a_circle_and_a_pipe_behind_a_link_are_found(root):
    (root / "own/a/x.png").symlink_to("x.png")
    os.mkfifo(root.parent / "pipe")
    (root / "own/a/y.png").symlink_to(root.parent / "pipe")
    with pytest.raises(UserError) as error:
        raw_files.check(root)
    assert "each of which is a link that leads nowhere" in str(error.value)
    assert "each of which is a pipe" in str(error.value)


def test_many_names_are_counted_and_ten_are_told(root):
    for number in range(13):
        os.mkfifo(root / f"own/a/{number:02d}")
    with pytest.raises(UserError, match=r"cannot read 13 of .*own/a/09 and 3 more\. Remove"):
        raw_files.check(root)


def test_control_characters_of_a_name_are_escaped():
    assert (
        raw_files.some(["a\x1b[31m\nb\udcff\u202e.png", "é ü.png"])
        == r"a\x1b[31m\nb\udcff\u202e.png, é ü.png"
    )
