"""Tests a folder per class: any size and mode, labels by name order, ids by path, and bad files by
name.
"""

import hashlib
import os
import struct
import subprocess
import sys
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image

from pipelines.datasets import picture_file, sources
from pipelines.errors import UserError


@pytest.fixture
def root(tmp_path):
    """Makes raw/own with classes ant, Bee and cat, one grey image each."""
    for name, level in (("cat", 200), ("ant", 20), ("Bee", 90)):
        (tmp_path / "raw/own" / name).mkdir(parents=True)
        Image.new("L", (9, 7), level).save(tmp_path / "raw/own" / name / "0.png")
    return tmp_path / "raw"


def read(root, shape=(4, 5, 1), classes=3, **more):
    return sources.read(
        "own", name="folder", classes=classes, shape=list(shape), root=root, **more
    )[0]


def grey(path, level=9):
    Image.new("L", (3, 3), level).save(path)


def test_labels_follow_the_names_in_the_order_of_their_characters(root):
    data = read(root)
    assert data.images.shape == (3, 4, 5, 1) and data.images.dtype == np.uint8
    assert data.labels.tolist() == [0, 1, 2]
    assert data.images[:, 0, 0, 0].tolist() == [90, 20, 200]  # Bee, ant, cat: capitals come first


def test_hidden_files_are_ignored_and_nested_ones_are_not(root):
    own = root / "own"
    (own / ".cache").mkdir()
    (own / ".cache/x.png").write_bytes(b"no image")
    (own / "ant/.DS_Store").write_bytes(b"no image")
    (own / "ant/.thumbs").mkdir()
    (own / "ant/.thumbs/x.png").write_bytes(b"no image")
    (own / "ant/2019").mkdir()
    Image.new("L", (3, 3), 21).save(own / "ant/2019/0.png")
    (own / "notes.txt").write_text("beside the classes")
    assert read(root).labels.tolist() == [0, 1, 1, 2]


def test_ids_are_names_that_other_files_do_not_change(root):
    before = dict(zip(read(root).images[:, 0, 0, 0].tolist(), read(root).ids.tolist()))
    assert len(set(before.values())) == 3 and min(before.values()) >= 0
    Image.new("L", (3, 3), 5).save(root / "own/Bee/00.png")  # sorts before most of the others
    (root / "own/cat/0.png").unlink()
    Image.new("L", (3, 3), 6).save(root / "own/cat/9.png")
    data = read(root)
    after = dict(zip(data.images[:, 0, 0, 0].tolist(), data.ids.tolist()))
    assert {after[level] for level in (20, 90)} == {before[level] for level in (20, 90)}
    Image.new("L", (8, 8), 77).save(root / "own/ant/0.png")  # other pixels, same record
    assert before[20] in read(root).ids


@pytest.mark.parametrize("cut", ["empty", "text", "half a png", "half a jpeg", "flipped"])
def test_an_unreadable_image_is_named(root, cut):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40)).astype(np.uint8))
    path = root / "own/ant/broken.png"
    noise.save(path, "jpeg" if cut == "half a jpeg" else "png")
    blob = path.read_bytes()
    flipped = bytes([*blob[:600], blob[600] ^ 0xFF, *blob[601:]])
    broken = {"empty": b"", "text": b"no image", "flipped": flipped}
    path.write_bytes(broken.get(cut, blob[: len(blob) // 2]))
    with pytest.raises(UserError, match=r"ant/broken\.png is no readable image \(") as error:
        read(root)
    assert str(error.value).count("\n") == 1
    assert "own has 1 image that cannot be read" in str(error.value)


def test_pixels_without_a_known_range_are_refused(root):
    Image.fromarray(np.ones((4, 4), np.float32)).save(root / "own/ant/float.tiff")
    with pytest.raises(UserError, match=r"float\.tiff is no readable image .* 8 or 16 bits"):
        read(root)


def test_no_folder_and_no_class_are_one_sentence(tmp_path):
    with pytest.raises(UserError, match=r"own is missing\. Put a folder per class there"):
        read(tmp_path)
    (tmp_path / "own").mkdir()
    with pytest.raises(UserError, match="own holds no folder"):
        read(tmp_path)


def test_more_folders_than_declared_classes_are_told(root):
    with pytest.raises(UserError, match=r"own must be in \[0, 1\]\. Got 0 to 2"):
        read(root, classes=2)


def test_an_empty_class_is_told(root):
    (root / "own/ant/0.png").unlink()
    with pytest.raises(UserError, match="Class 1 of own has no record"):
        read(root)


def test_a_link_that_hides_changes_from_dvc_is_refused(root, tmp_path):
    (root / "own/dog").symlink_to(root / "own/cat")
    with pytest.raises(UserError, match=r"own/dog is a link, behind which DVC sees no change"):
        read(root, classes=4)


def test_a_name_that_is_not_utf_8_has_an_id_and_others_keep_theirs(root):
    """The id of a UTF-8 name is the hash of its UTF-8 bytes."""
    grey(root / "own/ant/é.png")
    os.rename(root / "own/Bee/0.png", os.fsencode(root) + b"/own/Bee/\xff\xfe.png")

    def name(path: bytes) -> int:
        return int.from_bytes(hashlib.sha256(path).digest()[:8]) >> 1

    wanted = [b"Bee/\xff\xfe.png", b"ant/0.png", "ant/é.png".encode(), b"cat/0.png"]
    assert read(root).ids.tolist() == [name(path) for path in wanted]


def test_files_that_are_no_images_are_left_out_and_told(root, capsys):
    for name in ("ant/Thumbs.db", "Bee/desktop.ini", "Bee/.DS_Store", "notes.txt", "cat/no_ending"):
        (root / "own" / name).write_bytes(b"no image")
    grey(root / "own/beside.png")
    os.mkfifo(root / "own/cat/pipe.png")
    assert len(read(root)) == 3
    told = capsys.readouterr().out.splitlines()
    assert told == [
        "own: left out 1, each of which is a pipe: cat/pipe.png",
        "own: left out 1, each of which is an image in no class folder: beside.png",
        "own: left out 1, each of which is hidden by the dot before its name: Bee/.DS_Store",
        "own: left out 4, each of which is no image by the ending of its name: "
        "Bee/desktop.ini, ant/Thumbs.db, cat/no_ending, notes.txt",
    ]


def test_a_link_to_a_file_elsewhere_is_read_and_told(root, tmp_path, capsys):
    grey(tmp_path / "away.png", 77)
    (root / "own/ant/1.png").symlink_to(tmp_path / "away.png")
    (root / "own/ant/2.png").symlink_to("0.png")
    assert read(root).images[:, 0, 0, 0].tolist() == [90, 20, 77, 20, 200]
    assert capsys.readouterr().out == f"own: read 1 links to files outside {root}/own: ant/1.png\n"


def test_a_link_that_leads_nowhere_is_an_unreadable_image(root):
    (root / "own/ant/1.png").symlink_to("absent.png")
    (root / "own/ant/2.png").symlink_to("2.png")
    with pytest.raises(UserError) as error:
        read(root)
    assert "ant/1.png is no readable image (No such file or directory)." in str(error.value)
    assert "ant/2.png is no readable image (Too many levels of symbolic links)." in str(error.value)


@pytest.fixture
def twelve_broken(root):
    for number in range(12):
        (root / f"own/ant/broken{number:02d}.png").write_bytes(b"no image")
    return root


def test_all_bad_images_are_counted_and_the_first_ten_named(twelve_broken):
    with pytest.raises(UserError) as error:
        read(twelve_broken)
    *named, last = str(error.value).splitlines()
    assert len(named) == 10 and "ant/broken09.png is no readable image" in named[-1]
    assert last.startswith(
        "own has 12 images that cannot be read. Mend or remove them, or set 'prepare.on_unreadable'"
    )


def test_bad_images_can_be_skipped_and_are_told(twelve_broken, capsys):
    data = read(twelve_broken, on_unreadable="skip")
    assert data.labels.tolist() == [0, 1, 2] and data.images[:, 0, 0, 0].tolist() == [90, 20, 200]
    first, *named = capsys.readouterr().out.splitlines()
    assert (
        first == "own: skipped 12 images that cannot be read (prepare.on_unreadable: skip)"
        and len(named) == 10
    )


def test_a_class_of_skipped_images_alone_is_told(root):
    (root / "own/ant/0.png").write_bytes(b"")
    with pytest.raises(UserError, match="Class 1 of own has no record"):
        read(root, on_unreadable="skip")


@pytest.mark.parametrize("name", ["x.heic", "x.DCM", "x.svg"])
def test_images_of_a_format_that_is_not_read_are_no_silent_loss(root, name):
    (root / "own/ant" / name).write_bytes(b"anything")
    with pytest.raises(
        UserError,
        match=r"is no readable image \(only PNG, JPEG, BMP, TIFF, WEBP, GIF, PPM are read\)",
    ):
        read(root)


def test_an_eps_named_png_is_never_opened_as_one(root):
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EOF"
    (root / "own/ant/x.png").write_bytes(eps)
    with pytest.raises(
        UserError, match=r"x\.png is no readable image \(its content is none of PNG, "
    ):
        read(root)


def blank(width: int, height: int) -> bytes:
    """Returns a PNG of one bit per pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes((width // 8 + 2) * min(height, 100)))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("sides", [(10_001, 10_000), (12_000, 12_000), (60_000, 60_000)])
def test_an_image_above_the_limit_is_refused_before_it_is_decoded(root, sides, recwarn):
    (root / "own/ant/x.png").write_bytes(blank(*sides))
    with pytest.raises(
        UserError, match=r"x\.png is no readable image \(it has more than 100,000,000 pixels\)"
    ):
        read(root)
    assert not recwarn.list


def test_a_large_image_below_the_limit_warns_of_nothing(root, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monkeypatch.setattr(picture_file, "MOST_PIXELS", 63)
        assert len(read(root)) == 3


def test_a_control_character_in_a_name_does_not_reach_the_terminal(root):
    (root / "own/ant/a\x1b[31m\nb.png").write_bytes(b"no image")
    with pytest.raises(UserError) as error:
        read(root)
    assert r"ant/a\x1b[31m\nb.png is no readable image" in str(error.value) and "\x1b" not in str(
        error.value
    )


def nested(root, name: str, levels: int) -> None:
    """Makes `levels` folders of this name in one another, below the class ant, and an image in the
    last.
    """
    at = os.open(root / "own/ant", os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    grey(f"/proc/self/fd/{at}/deep.png")
    os.close(at)


@pytest.fixture
def removed(root):
    """Removes the nested folders at the end, for which pytest would call itself too often."""
    yield
    subprocess.run(["rm", "-rf", str(root)], check=True)


@pytest.mark.usefixtures("removed")
def test_a_path_too_long_for_the_system_is_one_sentence(root):
    nested(root, "d" * 200, 25)
    with pytest.raises(UserError, match="File name too long"):
        read(root)


@pytest.mark.usefixtures("removed")
def test_a_folder_deeper_than_pythons_stack_is_read(root):
    nested(root, "d", sys.getrecursionlimit() + 10)
    assert len(read(root)) == 4
