import exported
import pytest
from ruamel.yaml import YAML

from pipelines.synthesis import card_text
from pipelines.synthesis.hub import front_matter


def matter(release=None, **facts) -> dict:
    data = exported.images()
    card = exported.card(data, release, **facts)
    text = front_matter.text(card, data, card_text.class_names(card), size=7)
    before, inside, after = text.split("---")
    assert before == after == ""
    return YAML(typ="safe").load(inside)


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("CC BY 4.0 (a: b)", {"license": "cc-by-4.0"}),
        ("yours: [see] #1", {"license": "other", "license_name": "yours-see-1"}),
        ('two\nlines "quoted"', {"license": "other", "license_name": "two-lines-quoted"}),
        ("日本", {"license": "other", "license_name": "other"}),
        ("", {"license": "unknown"}),
    ],
)
def test_a_licence_is_one_that_the_hub_knows_or_has_a_name(licence, expected):
    found = matter(licence=licence)
    assert {key: found[key] for key in found if key.startswith("license")} == expected


def test_without_a_guarantee_the_tags_say_so():
    assert matter()["tags"] == ["synthetic", "differential-privacy"]
    for release in (exported.with_test_noise(), exported.without_privacy()):
        assert matter(release)["tags"] == ["synthetic", "NOT-private"]


def test_names_of_classes_are_texts():
    names = ["no", "1.0", "a: [b", 'say "ä"\\']
    found = matter(classes=4, class_names=names)
    label = found["dataset_info"]["features"][1]["dtype"]["class_label"]["names"]
    assert label == dict(zip("0123", names))


def test_sizes_are_those_of_the_released_images():
    (split,) = matter()["dataset_info"]["splits"]
    assert split == {"name": "train", "num_bytes": 7, "num_examples": 40}
