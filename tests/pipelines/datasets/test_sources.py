"""Tests where images come from, and what is refused before anything is made of them."""

from pathlib import Path

import numpy as np
import pytest
from shipped import changed, load

from pipelines.datasets import sources, torchvision_sets
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError


def test_digits_are_scikit_learn_s_with_their_full_range():
    data, test = sources.read("digits", name="digits", classes=10, shape=[8, 8, 1], root=Path("."))
    assert test is None
    assert data.images.shape == (1797, 8, 8, 1) and data.images.dtype == np.uint8
    assert data.images.min() == 0 and data.images.max() == 255
    assert np.array_equal(data.ids, np.arange(1797)) and set(data.labels) == set(range(10))
    from sklearn.datasets import load_digits

    np.testing.assert_allclose(data.pixels[..., 0], load_digits().images / 16, atol=0.002)


@pytest.fixture
def raw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()

    def save(labels, **more):
        np.savez(
            tmp_path / "raw" / "own.npz",
            images=np.zeros((len(labels), 4, 5), np.uint8),
            labels=labels,
            **more,
        )

    return save


def read(classes=3, shape=(4, 5, 1)):
    return sources.read("own", name="npz", classes=classes, shape=list(shape), root=Path("raw"))


def test_own_images_are_read_from_the_root_with_their_own_ids(raw):
    raw(np.array([0, 1, 2, 1]), ids=np.array([9, 7, 5, 3]))
    data, test = read()
    assert data.ids.tolist() == [9, 7, 5, 3] and test is None


def test_an_id_that_names_two_records_is_told(raw):
    """Neighbours of 2^60 too: as floats they would be one."""
    raw(np.array([0, 1, 2]), ids=np.array([2**60, 2**60 + 1, 2**60 + 2]))
    read()
    raw(np.array([0, 1, 2]), ids=np.array([4, 2**60, 4]))
    with pytest.raises(UserError, match=r"ids of own must name one record each\. Got 4 twice"):
        read()


def official(monkeypatch, labels, test_labels, test_first=100, side=4):
    parts = [
        Images(
            np.zeros((len(own), side, 5, 1), np.uint8), np.array(own), first + np.arange(len(own))
        )
        for own, first in ((labels, 0), (test_labels, test_first))
    ]
    monkeypatch.setitem(sources.SOURCES, "npz", lambda **_: tuple(parts))


def test_an_official_test_set_is_held_to_the_profile_too(raw, monkeypatch):
    official(monkeypatch, [0, 1, 2], [1])  # a class may be missing there
    assert [len(part) for part in read()] == [3, 1]
    official(monkeypatch, [0, 1, 2], [3])
    with pytest.raises(UserError, match="Got 3 to 3"):
        read()
    official(monkeypatch, [0, 1, 2], [0, 1], test_first=2)
    with pytest.raises(UserError, match="Got 2 twice"):
        read()
    official(monkeypatch, [0, 1], [2])
    with pytest.raises(UserError, match="Class 2 of own has no record"):
        read()


def test_no_root_is_one_sentence(tmp_path):
    with pytest.raises(
        UserError, match=r"'root' parameter of prepare must be an existing folder\. Got .*absent"
    ):
        sources.read("digits", name="digits", classes=10, shape=[8, 8, 1], root=tmp_path / "absent")


def test_a_profile_may_name_each_source_and_no_other():
    public = set()
    for source in sources.SOURCES:
        params = load(changed(("profiles", "my_npz", "source"), source))
        if params.profiles["my_npz"].is_public:
            public.add(source)
    assert public == {"digits", *torchvision_sets.CLASSES}  # own images are never public
    said = r"'source' parameter of profiles.mnist must be one of .* \(profiles/mnist.yaml\)$"
    with pytest.raises(UserError, match=said):
        sources.read("mnist", name="mnits", classes=10, shape=[28, 28, 1], root=Path())


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_a_class_missing_everywhere_is_named(raw, absent):
    raw(np.array([label for label in (0, 1, 2, 1) if label != absent]))
    with pytest.raises(UserError, match=f"Class {absent} of own has no record at all"):
        read()


@pytest.mark.parametrize(
    "labels, said", [([0, 1, 2, 3], "Got 0 to 3"), ([-1, 0, 1, 2], "Got -1 to 2")]
)
def test_a_label_outside_the_declared_list_is_named(raw, labels, said):
    raw(np.array(labels))
    with pytest.raises(UserError, match=said):
        read()


def test_another_shape_is_named(raw):
    raw(np.array([0, 1, 2]))
    with pytest.raises(
        UserError, match=r"'shape' parameter of profiles.own .* \[4, 5, 1\].* Got \[4, 4, 1\]"
    ):
        read(shape=(4, 4, 1))


def test_no_record_at_all_is_one_sentence(raw):
    raw(np.array([], np.int64))
    with pytest.raises(UserError, match="Class 0 of own has no record"):
        read()


def test_no_file_is_one_sentence(raw):
    with pytest.raises(UserError, match=r"raw/own\.npz is missing"):
        read()


def test_a_negative_id_is_refused_for_it_marks_synthetic_images(raw):
    raw(np.array([0, 1, 2]), ids=np.array([5, -1, 7]))
    with pytest.raises(
        UserError,
        match=r"ids of own must be 0 or above: -1 marks synthetic images\. Got -1 instead",
    ):
        read()


def test_channels_first_are_told_as_such(tmp_path):
    labels = np.array([0, 1, 2])
    np.savez(tmp_path / "own.npz", images=np.zeros((3, 3, 6, 7), np.uint8), labels=labels)
    with pytest.raises(UserError) as error:
        sources.read("own", name="npz", classes=3, shape=[6, 7, 3], root=tmp_path)
    assert "have their channels first, ['n', 3, 6, 7]" in str(error.value)
    assert "Convert: images = np.moveaxis(images, 1, -1)." in str(error.value)


def names(root, name, declared=None, classes=3):
    return sources.class_names("own", name=name, root=root, classes=classes, declared=declared)


def test_class_names_come_from_the_folders_and_must_be_the_declared_ones(tmp_path):
    for name in ("ant", "Bee", "cat"):
        (tmp_path / "own" / name).mkdir(parents=True)
    assert (
        names(tmp_path, "folder")
        == names(tmp_path, "folder", ["Bee", "ant", "cat"])
        == ["Bee", "ant", "cat"]
    )
    with pytest.raises(UserError) as error:
        names(tmp_path, "folder", ["ant", "Bee", "cat"])
    assert "The 'class_names' parameter of profiles.own must be the class folders' names" in str(
        error.value
    )
    assert "['Bee', 'ant', 'cat']. Got ['ant', 'Bee', 'cat'] instead." in str(error.value)


def test_class_names_come_from_the_file_or_the_profile(raw):
    labels = np.array([0, 1, 2])
    raw(labels)
    assert names(Path("raw"), "npz") is None and names(Path("raw"), "npz", ["x", "y", "z"]) == [
        "x",
        "y",
        "z",
    ]
    assert names(Path("raw"), "digits") is None
    raw(labels, class_names=np.array(["a", "b", "c"]))
    assert names(Path("raw"), "npz") == ["a", "b", "c"]
    with pytest.raises(UserError, match=r"must be those in the \.npz"):
        names(Path("raw"), "npz", ["x", "y", "z"])
    with pytest.raises(UserError, match=r"must name 4 classes\. Got 3 names"):
        names(Path("raw"), "npz", classes=4)
