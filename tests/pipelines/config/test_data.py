"""Tests how a profile describes its images: class names, shape, and what happens to bad files."""

import pytest
from shipped import load, mistakes, shipped

BAD_NAMES = [
    "benign",
    [0, 1],
    ["a", "a"],
    ["a", ""],
    ["a", " "],
    ["a", "x" * 61],
    ["a", "\x1b[31m"],
    ["a", "b\n"],
    ["a", None],
    [],
    {"a": 0},
]


@pytest.mark.parametrize("names", BAD_NAMES)
def test_class_names_are_a_list_of_texts_that_a_card_can_print(names):
    content = shipped()
    content["profiles"]["my_folder"] |= {"classes": 2, "class_names": names}
    (line,) = mistakes(content)
    rule = (
        "a name for each of the 2 classes" if names == [] else "null or a list of texts, none twice"
    )
    assert line.startswith(f"The 'class_names' parameter of profiles.my_folder must be {rule}")
    assert line.isprintable() and f"Got {names!r} instead" in line


def test_class_names_are_as_many_as_the_classes_and_may_be_left_out():
    content = shipped()
    content["profiles"]["my_folder"] |= {"classes": 3, "class_names": ["a", "ä b"]}
    (line,) = mistakes(content)
    assert "must be a name for each of the 3 classes. Got ['a', 'ä b'] instead." in line
    content["profiles"]["my_folder"]["class_names"] = ["a", "ä b", "7"]
    assert load(content).profiles["my_folder"].class_names == ["a", "ä b", "7"]
    del content["profiles"]["my_folder"]["class_names"]
    assert load(content).profiles["my_folder"].class_names is None


def test_a_shape_with_its_channels_first_is_told_as_such():
    """The sentence does not say that a network must be 'mlp' for images of three rows."""
    content = shipped()
    content["profiles"]["my_npz"]["shape"] = [3, 28, 28]
    (line,) = mistakes(content)
    assert (
        "must be [height, width, channels]: this one has its channels first, write [28, 28, 3]."
        in line
    )
    content["profiles"]["my_npz"]["shape"] = [28, 28, 3]
    assert load(content).profiles["my_npz"].shape == [28, 28, 3]


def test_bad_images_fail_where_nothing_else_is_said():
    content = shipped()
    del content["prepare"]["on_unreadable"]
    assert load(content).prepare.on_unreadable == "fail"
    content["prepare"]["on_unreadable"] = "ignore"
    assert mistakes(content)[0].startswith(
        "The 'on_unreadable' parameter of prepare must be one of 'fail' or 'skip'."
    )
