import exported
import pytest

from pipelines.synthesis import card_text, hub
from pipelines.synthesis.base import Weights


def first_lines(release: dict) -> str:
    """Returns what stands between the title and the first section."""
    text = card_text.markdown(exported.card(exported.images(), release))
    title, _, rest = text.partition("\n\n")
    assert title == "# Synthetic images digits/c0/dp_moments"
    return rest.partition("\n\n## ")[0]


def test_a_guarantee_is_told_in_the_first_lines():
    said = first_lines(exported.formal(epsilon=2.5))
    assert said.startswith("**Promised to each single record** that client `c0` of `digits`")
    assert "Epsilon is 2.5 and delta is 1e-05." in said
    assert "any two training parts that differ in one: add or remove one record." in said
    not_covered = said.partition("Not covered: ")[2]
    assert not_covered.startswith("the locally fine-tuned model; metrics computed on private")
    assert "a person whose records lie at several clients" in not_covered


@pytest.mark.parametrize(
    ("release", "why"),
    [
        (exported.with_test_noise, "is void: SEEDED TEST NOISE: no guarantee."),
        (exported.without_privacy, "is not private at all (epsilon infinite)."),
    ],
)
def test_without_a_guarantee_the_first_lines_say_that_nobody_was_promised_anything(release, why):
    said = first_lines(release())
    assert said.startswith("**Nothing was promised to anyone.** NO PRIVACY GUARANTEE:")
    assert why in said
    assert "may show any record of client `c0` of `digits`" in said
    assert "Promised to" not in said and "Epsilon is" not in said


def test_the_card_of_other_tools_begins_with_the_same_words(tmp_path):
    folder = exported.written(tmp_path / "own", exported.images())
    card = (folder / "card.md").read_text()
    assert not card.startswith("---")
    for_hubs = (folder / hub.FOLDER / hub.CARD).read_text()
    assert for_hubs.startswith("---\n") and for_hubs.endswith(f"\n---\n\n{card}")


def test_a_joint_release_is_promised_to_the_records_of_all_who_made_it():
    together = {"c0": "f00d", "c1": "beef", "c2": "cafe"}
    release = exported.formal()
    trust = {"dishonest": {"0": 2.25, "1": 3.0, "2": "inf"}}
    privacy = {**release["privacy"], "details": {**release["privacy"]["details"], "trust": trust}}
    text = card_text.markdown(
        exported.card(exported.images(), {**release, "privacy": privacy, "together": together})
    )
    assert "that any of the 3 clients that made this release together of `digits`" in text
    assert "| the same, as the ledger of `c1` knows it | beef |" in text
    assert "as the ledger of `c0` knows it" not in text
    assert "| 2 | inf |" in text and "`trust`" not in text


@pytest.mark.parametrize("release", [exported.formal, exported.without_privacy])
def test_a_released_classifier_is_told_with_its_network_and_its_price(release):
    data = exported.images()
    card = exported.card(data, release(), Weights("scatter", {}))
    section = card_text.markdown(card).partition("## Classifier\n\n")[2].partition("\n\n## ")[0]
    assert section.startswith("The export also holds `classifier.safetensors`: the weights")
    assert "a network `scatter` for 10 classes of images of 8x8x1." in section
    assert "it has cost no further privacy, and handing it out costs none." in section
    assert "holds for the images and the classifier together." in section
    assert card["classifier"] == {
        "file": "classifier.safetensors",
        "network": "scatter",
        "shape": [8, 8, 1],
        "classes": 10,
        "privacy": "part of the same release, at no further privacy cost",
    }


def test_a_card_of_images_alone_speaks_of_no_classifier():
    card = exported.card(exported.images())
    assert "classifier" not in card
    assert "classifier.safetensors" not in card_text.markdown(card)
