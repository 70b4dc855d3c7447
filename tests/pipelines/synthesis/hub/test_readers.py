"""Reads the folder with `datasets`, `huggingface_hub` and `mlcroissant`, bit by bit."""

import exported
import hub_readers
import numpy as np
import pytest

from pipelines.synthesis import hub

NAMES = ["no", "läsion: [x]", "1.0", "a|b"]
# {case: channels and facts of the profile}
CASES = {
    "grey": (1, {"classes": 4, "class_names": NAMES}),
    "colour": (3, {"classes": 5, "licence": "yours"}),
    "six channels": (6, {"licence": "none stated"}),
}


def data(case: str):
    return exported.images(channels=CASES[case][0])


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, hub_readers.Read]:
    reason = hub_readers.missing()
    if reason:
        pytest.skip(reason)
    folders = []
    for case, (_, facts) in CASES.items():
        place = tmp_path_factory.mktemp("exports") / "own"
        folders.append(exported.written(place, data(case), **facts) / hub.FOLDER)
    return dict(zip(CASES, hub_readers.read(*folders)))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("tool", ["rows", "records"])
def test_both_tools_read_each_image_and_label_as_it_was(found, case, tool):
    read = getattr(found[case], tool)
    images = data(case).images
    assert np.array_equal(read["images"].reshape(images.shape), images)
    assert np.array_equal(read["labels"], data(case).labels)


def test_an_image_of_many_channels_is_an_array_and_any_other_a_picture(found):
    kinds = {case: read.told["dataset"]["features"]["image"] for case, read in found.items()}
    assert kinds == {"grey": "Image", "colour": "Image", "six channels": "Array3D"}


@pytest.mark.parametrize(
    ("case", "names"),
    [("grey", NAMES), ("colour", list("01234")), ("six channels", [*"0123456789"])],
)
def test_the_classes_names_arrive_whatever_they_read(found, case, names):
    told = found[case].told
    assert told["dataset"]["class_names"] == names
    assert told["croissant"]["classes"] == names


def test_the_croissant_validates(found):
    """A date would make other bytes of the same images, and nobody is cited."""
    for read in found.values():
        told = read.told["croissant"]
        assert told["errors"] == []
        assert [line.split('"')[1].rpartition("/")[2] for line in told["warnings"]] == [
            "citeAs",
            "datePublished",
        ]


def test_the_card_validates(found):
    card = found["grey"].told["card"]
    assert card["task_categories"] == ["image-classification"]
    assert card["size_categories"] == ["n<1K"]
    assert card["dataset_info"]["splits"][0]["num_examples"] == 40


@pytest.mark.parametrize(
    ("case", "hub_name", "croissant"),
    [
        ("grey", "cc-by-4.0", ["https://spdx.org/licenses/CC-BY-4.0.html"]),
        ("colour", "other", ["yours"]),
        ("six channels", "unknown", ["none stated"]),
    ],
)
def test_a_standard_licence_has_its_standard_name(found, case, hub_name, croissant):
    assert found[case].told["card"]["license"] == hub_name
    assert found[case].told["croissant"]["licence"] == croissant
