import pytest

from pipelines import config
from pipelines.synthesis.hub import licences


@pytest.mark.parametrize(
    ("text", "hub", "spdx"),
    [
        ("MIT", "mit", "MIT"),
        ("cc-by-sa 3.0", "cc-by-sa-3.0", "CC-BY-SA-3.0"),
        ("CC0 (public domain)", "cc0-1.0", "CC0-1.0"),
        ("ODbL 1.0", "odbl", "ODbL-1.0"),
        ("MIT, but for two images", "other", None),
        ("CC BY 4.0 or later", "other", None),
        ("", "unknown", None),
    ],
)
def test_a_licence_is_found_by_its_words(text, hub, spdx):
    assert licences.of(text) == (hub, spdx)


def test_every_shipped_data_set_has_the_licence_that_it_states():
    found = {
        name: licences.of(profile.licence).hub for name, profile in config.load().profiles.items()
    }
    assert found["mnist"] == "cc-by-sa-3.0" and found["fashion_mnist"] == "mit"
    assert {found[name] for name in ("digits", "pneumonia", "breast")} == {"cc-by-4.0"}
    assert {found[name] for name in ("cifar10", "cifar100")} == {"unknown"}
