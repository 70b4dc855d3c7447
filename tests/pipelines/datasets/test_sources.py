"""Where images come from, and what is refused before anything is made of them."""

import numpy as np
import pytest

from pipelines.datasets import sources
from pipelines.errors import UserError


def test_digits_are_scikit_learn_s_with_their_full_range():
    data = sources.read("digits", name="digits", classes=10, shape=[8, 8, 1])
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
        np.savez(tmp_path / "raw" / "own.npz", images=np.zeros((len(labels), 4, 5), np.uint8), labels=labels, **more)

    return save


def read(classes=3, shape=(4, 5, 1)):
    return sources.read("own", name="npz", classes=classes, shape=list(shape))


def test_own_images_are_read_from_raw_with_their_own_ids(raw):
    raw(np.array([0, 1, 2, 1]), ids=np.array([9, 7, 5, 3]))
    assert read().ids.tolist() == [9, 7, 5, 3]


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_a_class_missing_everywhere_is_named(raw, absent):
    raw(np.array([label for label in (0, 1, 2, 1) if label != absent]))
    with pytest.raises(UserError, match=f"Class {absent} of own has no record at all"):
        read()


@pytest.mark.parametrize("labels, said", [([0, 1, 2, 3], "Got 0 to 3"), ([-1, 0, 1, 2], "Got -1 to 2")])
def test_a_label_outside_the_declared_list_is_named(raw, labels, said):
    raw(np.array(labels))
    with pytest.raises(UserError, match=said):
        read()


def test_another_shape_is_named(raw):
    raw(np.array([0, 1, 2]))
    with pytest.raises(UserError, match=r"'shape' parameter of profiles.own .* \[4, 5, 1\].* Got \[4, 4, 1\]"):
        read(shape=(4, 4, 1))


def test_no_record_at_all_is_one_sentence(raw):
    raw(np.array([], np.int64))
    with pytest.raises(UserError, match="Class 0 of own has no record"):
        read()


def test_no_file_is_one_sentence(raw):
    with pytest.raises(UserError, match=r"raw/own\.npz is missing"):
        read()
