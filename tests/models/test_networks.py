"""Tests the networks: their sizes, their seeds, and that no statistics couple the records of a
batch.
"""

from functools import partial

import numpy as np
import pytest
import torch

from models import classifiers
from models.generator import ConvGenerator, MlpGenerator, PaperGenerator
from models.teachers import TEACHERS
from pipelines.config.data import SMALLEST


@pytest.mark.parametrize(
    "name, shape",
    [
        ("mlp", (8, 8, 1)),
        ("mlp", (5, 7, 3)),
        ("cnn", (28, 28, 1)),
        ("cnn", (16, 16, 3)),
        ("resnet", (32, 32, 3)),
        ("resnet", (9, 9, 1)),
        ("papernot", (28, 28, 1)),
        ("fedavg_cnn", (28, 28, 1)),
        ("abadi", (24, 20, 3)),
        ("abadi", (32, 32, 3)),
    ],
)
def test_classifiers_are_a_function_of_their_seed_and_leave_the_global_one(name, shape):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, again, other = (
        classifiers.build(name, shape=shape, classes=4, seed=seed) for seed in (1, 1, 2)
    )
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), again.parameters()))
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters()))
    height, width, channels = shape
    assert one(torch.rand(3, channels, height, width)).shape == (3, 4)


def test_the_cnn_has_the_papers_size():
    cnn = classifiers.build("cnn", shape=(28, 28, 1), classes=10, seed=0)
    assert sum(parameter.numel() for parameter in cnn.parameters()) == 62_346


@pytest.mark.parametrize(
    "name, side, channels, size",
    [
        ("papernot", 28, 1, 26_010),
        ("fedavg_cnn", 28, 1, 582_026),
        ("fedavg_cnn", 32, 3, 878_538),
        ("abadi", 32, 3, 1_144_138),  # cut to 24x24
        ("abadi", 24, 3, 1_144_138),
    ],
)
def test_the_networks_of_the_papers_on_dp_sgd_have_their_sizes(name, side, channels, size):
    network = classifiers.build(name, shape=(side, side, channels), classes=10, seed=0)
    assert sum(parameter.numel() for parameter in network.parameters()) == size


def test_abadi_sees_the_middle_of_a_colour_image():
    network = classifiers.build("abadi", shape=(32, 32, 3), classes=4, seed=0)
    images = torch.rand(1, 3, 32, 32)
    changed = images.clone()
    changed[..., :4, :], changed[..., -4:] = 0, 0
    assert torch.equal(network(images), network(changed))
    changed[..., 4, 4] = 9
    assert not torch.equal(network(images), network(changed))


@pytest.mark.parametrize("height, width", [(32, 100), (64, 32), (33, 29), (40, 20), (28, 28)])
def test_abadi_cuts_each_side_by_itself(height, width):
    """A side of more than 28 pixels is cut to 24. Both poolings leave 6 of them."""
    network = classifiers.build("abadi", shape=(height, width, 3), classes=4, seed=0)
    left = [(24 if side > 28 else side) // 4 for side in (height, width)]
    assert network(torch.rand(2, 3, height, width)).shape == (2, 4)
    dense = next(module for module in network.modules() if isinstance(module, torch.nn.Linear))
    assert dense.in_features == 64 * np.prod(left)


@pytest.mark.parametrize("name, least", SMALLEST.items())
def test_the_smallest_image_that_a_network_takes(name, least):
    build = partial(classifiers.build, name, classes=2, seed=0)
    assert build(shape=(least, least, 1))(torch.rand(1, 1, least, least)).shape == (1, 2)
    with pytest.raises(RuntimeError):
        build(shape=(least - 1, least - 1, 1))


def test_tanh_replaces_every_relu():
    for name in ("mlp", "cnn", "papernot", "fedavg_cnn", "abadi"):
        kinds = [
            {
                type(module)
                for module in classifiers.build(
                    name, shape=(28, 28, 1), classes=3, seed=0, **how
                ).modules()
            }
            for how in ({}, {"activation": "tanh"})
        ]
        assert torch.nn.Tanh not in kinds[0] and torch.nn.ReLU not in kinds[1]
        assert kinds[0] - {torch.nn.ReLU} == kinds[1] - {torch.nn.Tanh}


def test_the_resnet_has_eighteen_layers_and_keeps_the_size_of_small_images_in_its_stem():
    resnet = classifiers.build("resnet", shape=(32, 32, 3), classes=10, seed=0)
    layers = [
        module
        for module in resnet.modules()
        if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear))
    ]
    assert len([layer for layer in layers if getattr(layer, "kernel_size", (3, 3)) != (1, 1)]) == 18
    assert sum(parameter.numel() for parameter in resnet.parameters()) == 11_173_962
    stem = torch.nn.Sequential(resnet.conv1, resnet.maxpool)
    assert stem(torch.rand(1, 3, 32, 32)).shape == (1, 64, 32, 32)


@pytest.mark.parametrize(
    "network",
    [
        classifiers.build("mlp", shape=(8, 8, 1), classes=3, seed=0),
        classifiers.build("cnn", shape=(16, 16, 1), classes=3, seed=0),
        classifiers.build("resnet", shape=(16, 16, 3), classes=3, seed=0),
        MlpGenerator(shape=(8, 8, 1), classes=3, latent=2),
    ],
    ids=["mlp", "cnn", "resnet", "generator"],
)
def test_no_network_keeps_batch_statistics(network):
    assert list(network.buffers()) == []
    assert not any("BatchNorm" in type(module).__name__ for module in network.modules())


@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet"])
def test_no_classifier_lets_records_of_a_batch_see_each_other(name):
    network = classifiers.build(name, shape=(16, 16, 1), classes=3, seed=0).train()
    images = torch.rand(4, 1, 16, 16)
    torch.testing.assert_close(network(images)[:1], network(images[:1]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", TEACHERS)
def test_no_teacher_and_no_generator_of_the_paper_couples_the_images_of_a_batch(name):
    """They have norms over one image each, so an image's result does not depend on the rest of the
    batch.
    """
    teacher = TEACHERS[name]((9, 7, 1), 3, 6)
    stream = torch.Generator().manual_seed(0)
    for parameter in teacher.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=stream)
    generator = PaperGenerator(shape=(9, 7, 1), classes=3, latent=4)
    images, z = torch.rand(6, 1, 9, 7, generator=stream), torch.rand(6, 4, generator=stream)
    labels = torch.arange(6) % 3
    for network, inputs in ((teacher, images), (generator, z)):
        assert list(network.buffers()) == []
        assert not any(
            isinstance(module, torch.nn.modules.batchnorm._NormBase) for module in network.modules()
        )
        alone, together = network(inputs[:1], labels[:1]), network(inputs, labels)[:1]
        torch.testing.assert_close(alone, together, atol=1e-5, rtol=1e-5)
        assert not torch.allclose(network(inputs[1:2], labels[:1]), alone, atol=1e-5)


def test_generator_makes_pixels_for_its_labels():
    generator = MlpGenerator(shape=(4, 6, 3), classes=5, latent=2)
    z, labels = generator.draw(4000, torch.Generator().manual_seed(0))
    assert z.shape == (4000, 2) and -1 <= z.min() < -0.99 and 0.99 < z.max() <= 1
    np.testing.assert_allclose(np.bincount(labels) / 4000, [0.2] * 5, atol=0.04)
    images = generator(z[:3], labels[:3])
    assert images.shape == (3, 3, 4, 6) and images.min() >= 0 and images.max() <= 1
    assert not torch.equal(generator(z[:1], torch.tensor([0])), generator(z[:1], torch.tensor([1])))


@pytest.mark.parametrize("shape", [(28, 28, 1), (6, 5, 3)])
def test_the_conv_generator_keeps_no_statistics_of_earlier_batches(shape):
    generator = ConvGenerator(shape=shape, classes=5, latent=2)
    z, labels = generator.draw(20, torch.Generator().manual_seed(0))
    before = generator(z, labels)
    assert before.shape == (20, shape[2], *shape[:2]) and before.min() >= 0 and before.max() <= 1
    generator(z * 9, labels.flip(0))
    assert list(generator.buffers()) == [] and torch.equal(generator(z, labels), before)
    assert torch.equal(generator.eval()(z, labels), before)
