"""Tests who owns the images of a folder: a folder per site, and the table `clients.csv`."""

import numpy as np
import pytest
from PIL import Image

from pipelines.datasets import sources
from pipelines.errors import UserError

IMAGES = ("north/cat/1", "north/ant/1", "south/cat/1", "south/cat/deep/2", "west/ant/1")


def grey(path, level=9):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (3, 3), level).save(path)


@pytest.fixture
def root(tmp_path):
    """Makes three sites, two of which lack a class."""
    for level, name in enumerate(IMAGES):
        grey(tmp_path / "raw/own" / f"{name}.png", level)
    return tmp_path / "raw"


def read(root, name="site_folder", classes=2, **more):
    return sources.read("own", name=name, classes=classes, shape=[3, 3, 1], root=root, **more)[0]


def facts(data) -> list[tuple]:
    """Returns (level, label, owner) of each record."""
    levels = data.images[:, 0, 0, 0].tolist()
    return sorted(zip(levels, data.labels.tolist(), data.owners.tolist(), strict=True))


def test_the_upper_folder_is_the_owner_and_the_lower_one_the_class(root):
    data = read(root)
    expected = [(0, 1, "north"), (1, 0, "north"), (2, 1, "south"), (3, 1, "south"), (4, 0, "west")]
    assert facts(data) == expected
    assert len(set(data.ids.tolist())) == 5


def test_classes_are_those_of_all_sites_together(root):
    def names(**more):
        return sources.class_names(
            "own", name="site_folder", root=root, declared=None, **{"classes": 2, **more}
        )

    assert names() == ["ant", "cat"]
    with pytest.raises(UserError, match=r"must be the number of class folders, 2\. Got 3"):
        names(classes=3)
    grey(root / "own/west/bee/1.png")
    assert names(classes=3) == ["ant", "bee", "cat"]


def test_images_in_no_class_folder_are_left_out_and_told(root, capsys):
    grey(root / "own/top.png")
    grey(root / "own/north/aside.png")
    (root / "own/.hidden/cat").mkdir(parents=True)
    assert len(read(root)) == 5
    said = "left out 2, each of which is an image in no class folder: north/aside.png, top.png"
    assert said in capsys.readouterr().out


def test_class_folders_without_sites_are_refused(tmp_path):
    grey(tmp_path / "raw/own/cat/1.png")
    with pytest.raises(
        UserError, match=r"holds no folder of a class\. Put a folder per class into"
    ):
        read(tmp_path / "raw")


def test_a_table_beside_folders_of_sites_is_refused(root):
    (root / "own/clients.csv").write_text("file,client\n")
    with pytest.raises(UserError, match=r"clients\.csv must not lie beside the folders of sites"):
        read(root)


@pytest.fixture
def table(tmp_path):
    """Makes class folders and a table of their owners."""
    for level, name in enumerate(("cat/1", "ant/1", "cat/deep/2")):
        grey(tmp_path / "raw/own" / f"{name}.png", level)
    rows = "file,client\ncat/deep/2.png,south\nant/1.png,north\ncat/1.png,north\n"
    (tmp_path / "raw/own/clients.csv").write_text(rows)
    return tmp_path / "raw"


def test_the_table_is_read_beside_class_folders_and_is_no_stray_file(table, capsys):
    data = read(table, name="folder")
    assert facts(data) == [(0, 1, "north"), (1, 0, "north"), (2, 1, "south")]
    assert capsys.readouterr().out == ""
    (table / "own/clients.csv").unlink()
    assert read(table, name="folder").owners is None


def test_owners_stay_with_their_images_where_others_are_skipped(table):
    (table / "own/ant/1.png").write_bytes(b"no image")
    grey(table / "own/ant/2.png", 7)
    with (table / "own/clients.csv").open("a") as file:
        file.write("ant/2.png,west\n")
    data = read(table, name="folder", on_unreadable="skip")
    assert facts(data) == [(0, 1, "north"), (2, 1, "south"), (7, 0, "west")]


def test_a_table_is_checked_before_any_image_is_read(table, monkeypatch):
    grey(table / "own/ant/2.png")
    monkeypatch.setattr(
        "pipelines.datasets.image_folder.picture", lambda *_: pytest.fail("an image was read")
    )
    with pytest.raises(UserError, match=r"1 of 4 have none: ant/2\.png"):
        read(table, name="folder")


def test_labels_and_pixels_are_the_same_with_and_without_a_table(table):
    with_table = read(table, name="folder")
    (table / "own/clients.csv").unlink()
    without = read(table, name="folder")
    for field in ("images", "labels", "ids"):
        np.testing.assert_array_equal(getattr(with_table, field), getattr(without, field))
