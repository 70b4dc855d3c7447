"""Tests the `scatter` network: its state is one linear layer, and its features are shared."""

import numpy as np
import pytest
import torch

from models import classifiers, scattering_basis, scattering_features
from models.fixed_features import head
from models.scattering import Scattering, normalised
from models.scattering_features import ScatteringFeatures

SHAPE = (9, 8, 3)


@pytest.fixture(scope="module")
def basis():
    return scattering_basis.make(SHAPE, images=150)


@pytest.fixture(scope="module")
def features(basis):
    return ScatteringFeatures(SHAPE, basis)


def test_the_features_are_the_recipe_s(basis, features):
    images = torch.rand(4, 3, 9, 8, dtype=torch.float64)
    phi = normalised(Scattering(9, 8, torch.float64)(images)).numpy()
    expected = (phi - basis.mean) @ basis.directions.T.astype(float) * basis.weights
    np.testing.assert_allclose(features(images.float()), expected, atol=2e-5)


def test_the_state_is_one_linear_layer_of_zeros(features):
    model = head(features, classes=4)
    assert {name: tensor.shape for name, tensor in model.state_dict().items()} == {
        "2.weight": (4, features.count + 1)
    }
    assert [name for name, _ in model.named_parameters()] == ["2.weight"]
    assert not model(torch.rand(2, 3, 9, 8)).any()


def test_the_bias_is_the_weight_of_a_constant(features):
    model = head(features, classes=2)
    images = torch.rand(3, 3, 9, 8)
    entering = model[1](model[0](images))
    torch.testing.assert_close(entering[:, -1], torch.full((3,), 0.3))
    torch.testing.assert_close(entering[:, :-1], features(images))


def test_networks_share_tensors_and_nothing_else(features):
    one, other = head(features, 2), head(features, 2)
    assert one[0] is not other[0]
    for a, b in zip(one.buffers(), other.buffers()):
        assert a.data_ptr() == b.data_ptr()
    one.double()
    assert features.projection.dtype == other[0].projection.dtype == torch.float32
    one[0].register_forward_hook(lambda *_: None)
    assert not other[0]._forward_hooks


def test_it_moves_as_the_other_networks_do(features):
    model = head(features, 2).to("cpu", memory_format=torch.channels_last)
    images = torch.rand(3, 3, 9, 8)
    expected = model[0](images)
    torch.testing.assert_close(model[0](images.to(memory_format=torch.channels_last)), expected)


def test_an_image_does_not_see_the_others(features):
    images = torch.rand(30, 3, 9, 8)
    torch.testing.assert_close(features(images)[5:6], features(images[5:6]), atol=1e-5, rtol=0)


def test_build_makes_it_from_given_features(features):
    model = classifiers.build("scatter", shape=SHAPE, classes=5, seed=0, features=features)
    assert model(torch.rand(2, 3, 9, 8)).shape == (2, 5)
    assert model[0].projection.data_ptr() == features.projection.data_ptr()


def test_a_message_of_small_grey_images_is_small():
    """28x28 has 501 numbers a class, which is 20 kB for ten."""
    count = min(scattering_basis.DIRECTIONS, scattering_basis.feature_count((28, 28, 1)))
    assert (count + 1) * 10 * 4 == 20_040


def test_without_features_they_are_made_once_in_a_process():
    assert scattering_features.made((8, 8, 1)) is scattering_features.made((8, 8, 1))
