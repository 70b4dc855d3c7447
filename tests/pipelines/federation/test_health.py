"""A dead shared model is found and a live one is not, at a size of seconds, on images that are nobody's."""

from functools import partial

import numpy as np
import pytest

from models import classifiers
from pipelines.config import load
from pipelines.config.training import Meta, Nothing, Pooled
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.federation import health
from pipelines.federation.core.task import Task
from pipelines.federation.inprocess import federate
from pipelines.training import classifier
from pipelines.training.tensors import state_of

BUILD = partial(classifiers.build, "cnn", shape=(16, 16, 1), classes=2, seed=0)
META = {**load().baselines.fedmeta.model_dump(), "rounds": 8, "batch": 32}


def images(count: int, seed: int, labels=None) -> Images:
    """Returns two classes: a bright square on the left, or on the right."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count) if labels is None else np.full(count, labels)
    pixels = rng.integers(0, 60, (count, 16, 16, 1)).astype(np.uint8)
    for row, label in enumerate(labels):
        pixels[row, 4:12, 9 * label : 9 * label + 6] += 120
    return Images(pixels, labels.astype(np.int64), np.full(count, -1, np.int64))


# each client has a single class: what is dead is right about each client's own set
SETS = {"a": images(120, 1, labels=0), "b": images(120, 2, labels=1), "c": images(120, 3)}


def checked(model, sets=SETS, **known):
    start = state_of(BUILD())
    return health.check(
        model, start, sets.values(), build=BUILD, seed=0, remedy="Lower it.", **known
    )


def meta_trained(rate: float):
    task = Task(SETS, BUILD, None, dict.fromkeys(SETS, 10.0), seed=0)
    return federate("pppfl", task, Meta(**{**META, "outer_learning_rate": rate})).models[-1]


def test_a_convolutional_model_trained_at_too_high_a_rate_is_found():
    """At 28x28 and above 0.03 is enough; these images are easier."""
    found = checked(meta_trained(1.0))
    assert found.collapsed and found.accuracy == found.guessing == 0.5
    assert found.why.startswith(
        "After a hundred steps it takes every image for class "
    ) and found.why.endswith("Lower it.")
    assert found.untrained > 0.9


def test_a_model_of_the_networks_own_rate_is_not():
    found = checked(meta_trained(3e-3))
    assert not found.collapsed and found.why == "" and found.accuracy > 0.9


def test_neither_is_an_untrained_one_nor_one_that_was_trained_on_all_sets():
    assert not checked(state_of(BUILD())).collapsed
    model = BUILD()
    classifier.fit(
        model, concatenate(list(SETS.values())), epochs=5, batch=32, learning_rate=2e-3, seed=0
    )
    assert not checked(state_of(model)).collapsed


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_and_losses_that_are_not_finite_need_no_image(value):
    model = state_of(BUILD())
    assert "loss is not finite" in checked(model, {}, losses=[value]).why
    model["2.bias"][0] = value
    found = checked(model, {})
    assert found.collapsed and found.why == "The weights '2.bias' are not finite. Lower it."


def test_a_model_that_sees_no_difference_is_found_by_public_images_too():
    model = state_of(BUILD())
    model["0.0.weight"][:], model["0.0.bias"][:] = (
        0.0,
        -1.0,
    )  # no unit of the first layer ever answers
    assert checked(model, {"public": images(40, 9)}).collapsed


def test_where_the_images_can_teach_nothing_nothing_is_said():
    dead = {name: np.zeros_like(array) for name, array in state_of(BUILD()).items()}
    noise = images(200, 4)
    noise = Images(noise.images, np.random.default_rng(0).permutation(noise.labels), noise.ids)
    assert not checked(dead, {"noise": noise}).collapsed
    for sets in (
        {},
        {"empty": noise[:0]},
        {"one class": images(50, 5, labels=1)},
        {"few": images(5, 6)[:3]},
    ):
        found = checked(dead, sets)
        assert not found.collapsed and found.accuracy is None


def test_rare_classes_do_not_shrink_the_test_to_themselves():
    single = images(1, 8)
    rare = Images(single.images, np.array([2]), single.ids)
    support, query = health._balanced([images(100, 7), rare], 0)
    assert np.bincount(support.labels).tolist() == [22, 22]  # of 44 in the smaller class
    assert np.bincount(query.labels).tolist() == [22, 22]


def test_the_remedy_names_the_rate_and_where_it_stands():
    said = health.remedy("skin", "meta", Meta(**META))
    assert said.endswith("Lower outer_learning_rate of meta (profiles.skin.training), now 0.03.")
    pooled = Pooled(steps=1, batch=8, learning_rate=2e-3)
    assert "Lower learning_rate of baselines.pooled" in health.remedy(
        "skin", "baselines.pooled", pooled
    )
    assert "Lower" not in health.remedy("skin", "baselines.random_init", Nothing())
