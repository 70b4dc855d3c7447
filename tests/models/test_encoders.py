"""Tests the features of frozen encoders: their recipe, their norm, and that images stay apart."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from models import classifiers, encoders
from models.encoders import EncoderFeatures, architecture

SMALL = "resnet18"


@pytest.fixture(scope="module")
def features():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = architecture(SMALL)
        for tensor in network.buffers():
            if tensor.is_floating_point():
                tensor.uniform_(0.5, 1.5)
        return EncoderFeatures(network, SMALL, side=32)


@pytest.mark.parametrize("name", encoders.LAST_LAYERS)
def test_each_network_gives_as_many_features_as_it_says(name):
    found = EncoderFeatures(architecture(name), name, side=32)
    assert found(torch.rand(2, 3, 8, 8)).shape == (2, found.count)
    assert not found.state_dict() and not list(found.parameters())


def test_features_follow_the_recipe():
    """Against a naive computation of the network's own layers."""
    network = architecture(SMALL).eval()
    images = torch.rand(2, 3, 8, 8)
    means = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
    deviations = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
    entering = F.interpolate(images, (32, 32), mode="bicubic", align_corners=False)
    x = (entering - means) / deviations
    for name, layer in network.named_children():
        if name != "fc":
            x = layer(x)
    averages = x.flatten(1).detach().numpy()
    roots = np.sqrt(averages)
    expected = (roots - roots.mean(1, keepdims=True)) / np.sqrt(roots.var(1) + 1e-5)[:, None]
    found = EncoderFeatures(network, SMALL, side=32)(images)
    np.testing.assert_allclose(found, expected * 2 / np.sqrt(512), atol=1e-4)


def test_a_grey_image_is_one_of_three_equal_colours(features):
    grey = torch.rand(3, 1, 8, 8)
    torch.testing.assert_close(features(grey), features(grey.expand(-1, 3, -1, -1)))


def test_an_image_does_not_see_the_others(features):
    images = torch.rand(5, 3, 8, 8)
    torch.testing.assert_close(features(images)[2:3], features(images[2:3]), atol=1e-5, rtol=1e-4)


def test_negative_averages_keep_their_signs():
    averages = torch.tensor([[4.0, -9.0, 0.0, 1.0]])
    roots = np.array([2.0, -3.0, 0.0, 1.0])
    expected = (roots - roots.mean()) / np.sqrt(roots.var() + 1e-5)
    np.testing.assert_allclose(encoders.normalised(averages)[0], expected, atol=1e-6)


def test_networks_of_one_encoder_share_its_weights(features):
    models = [
        classifiers.build("encoder", shape=(8, 8, 3), classes=3, seed=0, features=features)
        for _ in range(2)
    ]
    for a, b in zip(models[0][0].buffers(), models[1][0].buffers()):
        assert a.data_ptr() == b.data_ptr()
    assert list(models[0].state_dict()) == ["2.weight"]


@pytest.mark.parametrize("name", encoders.LAST_LAYERS)
def test_the_weights_of_a_head_are_put_back_by_their_name(name):
    """Batch norm in the frozen part asks for nothing beside the head, and features stay."""
    features = EncoderFeatures(architecture(name), name, side=32)
    model = classifiers.build("encoder", shape=(8, 8, 3), classes=3, seed=0, features=features)
    images = torch.rand(2, 3, 8, 8)
    before = model[0](images)
    weights = torch.rand(model[2].weight.shape)
    model.load_state_dict({"2.weight": weights})
    assert torch.equal(model[2].weight, weights)
    assert torch.equal(model[0](images), before)


def test_building_a_network_leaves_the_random_stream_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    architecture(SMALL)
    assert torch.rand(1) == expected
