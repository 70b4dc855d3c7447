"""A personal model: one set of weights, two read-outs, and a file that holds both."""

import numpy as np
import pytest
import torch

from pipelines.config import load
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.federation.home import personal
from pipelines.files import write_arrays
from pipelines.training import classifier
from pipelines.training.replay import log_prior
from pipelines.training.tensors import logits, state_of, tensors

PROFILE = load().profiles["digits"]
PRIOR = log_prior(np.array([0] * 40 + [3] * 10), PROFILE.classes)


def images(count: int = 50) -> Images:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, *PROFILE.shape)).astype(np.uint8)
    return Images(pixels, np.arange(count) % 10, np.arange(count))


def network() -> torch.nn.Module:
    return classifier.new(PROFILE, seed=1)


def test_the_prior_counts_on_the_clients_own_images_alone():
    outputs = logits(network(), tensors(images())[0])
    model = personal.balanced(network(), PRIOR)
    expected = (outputs + torch.as_tensor(PRIOR)).argmax(1)
    assert np.array_equal(model.predict(images()), expected)
    assert np.array_equal(model.predict(images(), elsewhere=True), outputs.argmax(1))
    assert not np.array_equal(model.predict(images()), model.predict(images(), elsewhere=True))


def test_weights_that_learned_the_prior_have_it_taken_off_elsewhere():
    outputs = logits(network(), tensors(images())[0])
    model = personal.prior_off(network(), PRIOR)
    assert np.array_equal(model.predict(images()), outputs.argmax(1))
    expected = (outputs - torch.as_tensor(PRIOR)).argmax(1)
    assert np.array_equal(model.predict(images(), elsewhere=True), expected)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_array_of_images_is_read_as_images_are(elsewhere):
    model = personal.balanced(network(), PRIOR)
    expected = model.probabilities(images(), elsewhere=elsewhere)
    np.testing.assert_array_equal(
        model.probabilities(images().images, elsewhere=elsewhere), expected
    )
    with pytest.raises(UserError, match=r"uint8 \[n, height, .* Got float32 \[50, 8, 8, 1\]"):
        model.predict(images().pixels)


def test_a_file_gives_both_read_outs_back(tmp_path):
    model = personal.balanced(network(), PRIOR)
    personal.write(tmp_path / "c0.safetensors", model)
    again = personal.read(tmp_path / "c0.safetensors", PROFILE)
    for elsewhere in (False, True):
        predicted = again.predict(images(), elsewhere=elsewhere)
        assert np.array_equal(predicted, model.predict(images(), elsewhere=elsewhere))


def test_beside_a_model_trained_alone_the_mean_of_both_counts_at_home_and_nowhere_else(tmp_path):
    images_of_test, _ = tensors(images())
    other = classifier.new(PROFILE, seed=2)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(4)  # as sure of itself as a trained one
    ours = (logits(network(), images_of_test) + torch.as_tensor(PRIOR)).softmax(1)
    expected = (ours + logits(other, images_of_test).softmax(1)).argmax(1)
    assert not torch.equal(expected, ours.argmax(1)), "the other changes something"
    model = personal.balanced(network(), PRIOR, other)
    personal.write(tmp_path / "c0.safetensors", model)
    for held in (model, personal.read(tmp_path / "c0.safetensors", PROFILE)):
        assert np.array_equal(held.predict(images()), expected)
        everywhere = logits(network(), images_of_test).argmax(1)
        assert np.array_equal(held.predict(images(), elsewhere=True), everywhere)


def test_weights_alone_are_no_personal_model(tmp_path):
    write_arrays(tmp_path / "w.safetensors", state_of(network()))
    with pytest.raises(UserError, match="holds no personal model"):
        personal.read(tmp_path / "w.safetensors", PROFILE)


def test_probabilities_are_those_of_the_read_out_and_their_mean_with_another_model():
    model = personal.balanced(network(), PRIOR, classifier.new(PROFILE, seed=2))
    at_home = model.probabilities(images())
    np.testing.assert_allclose(at_home.sum(1), 1, rtol=1e-5)
    first = (logits(network(), tensors(images())[0]) + torch.as_tensor(PRIOR)).softmax(1)
    second = logits(classifier.new(PROFILE, seed=2), tensors(images())[0]).softmax(1)
    np.testing.assert_allclose(at_home, (first + second) / 2, rtol=1e-5)
    elsewhere = model.probabilities(images(), elsewhere=True)
    expected = logits(network(), tensors(images())[0]).softmax(1)
    np.testing.assert_allclose(elsewhere, expected, rtol=1e-5)


def test_a_model_of_another_network_is_read_by_its_name(tmp_path):
    built = PROFILE.model_copy(update={"classifier": "scatter"})
    model = personal.balanced(classifier.new(built, seed=0), PRIOR)
    personal.write(tmp_path / "c0.safetensors", model)
    again = personal.read(tmp_path / "c0.safetensors", PROFILE, "scatter")
    assert np.array_equal(again.predict(images()), model.predict(images()))
    with pytest.raises(UserError, match="do not fit their network"):
        personal.read(tmp_path / "c0.safetensors", PROFILE)
