"""Tests many teachers at once against the plain form of each: values, gradients and isolation."""

import pytest
import torch
import torch.nn.functional as F

from models import stacked, stacked_layers
from models.teachers import TEACHERS, same

SHAPES = [(28, 28, 1), (8, 8, 3), (7, 10, 1), (1, 3, 2)]
CLASSES, COUNT, BATCH = 3, 4, 5


@pytest.fixture(params=[(name, shape) for name in TEACHERS for shape in SHAPES], ids=str)
def teacher(request):
    name, shape = request.param
    return TEACHERS[name](shape, CLASSES, 6), shape


def drawn(teacher, dtype=torch.float64, seed=0):
    """Returns stacked weights in float64, norms and biases moved away from their start.

    In float64 no value meets a ReLU's kink.
    """
    generator = torch.Generator().manual_seed(seed)
    weights = stacked.initial(teacher, COUNT, generator)
    noise = {
        name: 0.05 * torch.randn(tensor.shape, generator=generator)
        for name, tensor in weights.items()
    }
    return {
        name: (tensor.detach() + noise[name]).to(dtype).requires_grad_()
        for name, tensor in weights.items()
    }


def batches(shape, dtype=torch.float64):
    """Returns each teacher's own batch, and one that all share."""
    generator = torch.Generator().manual_seed(1)
    height, width, channels = shape
    images = torch.randn(COUNT + 1, BATCH, channels, height, width, generator=generator).to(dtype)
    labels = torch.randint(CLASSES, (COUNT + 1, BATCH), generator=generator)
    return (images[1:].clone(), labels[1:]), stacked.shared(images[0], labels[0], COUNT)


def plain(teacher, weights, index):
    copied = {name: tensor[index].detach() for name, tensor in weights.items()}
    teacher.to(next(iter(copied.values())).dtype).load_state_dict(copied)
    return teacher


def test_values_and_gradients_are_those_of_a_plain_loop(teacher):
    network, shape = teacher
    weights, (own, shared) = drawn(network), batches(shape)
    together = stacked.logits(network, weights, own, shared)
    together.square().sum().backward()
    for index in range(COUNT):
        module = plain(network, weights, index)
        module.zero_grad()
        alone = torch.cat(
            [module(own[0][index], own[1][index]), module(shared[0][0], shared[1][0])]
        )
        torch.testing.assert_close(together[index], alone, atol=1e-12, rtol=1e-12)
        alone.square().sum().backward()
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(
                weights[name].grad[index], parameter.grad, atol=1e-11, rtol=1e-11
            )


def test_in_float32_the_two_forms_agree_to_float32(teacher):
    network, shape = teacher
    weights, (own, shared) = drawn(network, torch.float32), batches(shape, torch.float32)
    together = stacked.logits(network, weights, own, shared)
    for index in range(COUNT):
        alone = plain(network, weights, index)(own[0][index], own[1][index])
        torch.testing.assert_close(together[index, :BATCH], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("which", [0, 1], ids=["own", "shared"])
def test_gradients_of_images_are_those_of_a_plain_loop(teacher, which):
    """Shared images still have a gradient from each teacher."""
    network, shape = teacher
    weights, (images, labels) = drawn(network), batches(shape)[which]
    frozen = {name: tensor.detach() for name, tensor in weights.items()}
    leaf = images.requires_grad_()
    (together,) = torch.autograd.grad(stacked.logits(network, frozen, (leaf, labels)).sum(), leaf)
    for index in range(COUNT):
        one = images[index].detach().clone().requires_grad_()
        (alone,) = torch.autograd.grad(
            plain(network, weights, index)(one, labels[index]).sum(), one
        )
        torch.testing.assert_close(together[index], alone, atol=1e-11, rtol=1e-11)


def test_no_row_of_teachers_or_images_sees_another(teacher):
    """This holds even if one of them is not finite."""
    network, shape = teacher
    weights, (own, shared) = drawn(network), batches(shape)
    before = stacked.logits(network, weights, own, shared)
    for tensor in weights.values():
        tensor.data[2] = float("nan")
    own[0][0, 3] = float("inf")
    after = stacked.logits(network, weights, own, shared)
    assert torch.equal(after[[1, 3]], before[[1, 3]])
    others = [*range(3), *range(4, 2 * BATCH)]
    torch.testing.assert_close(after[0, others], before[0, others], atol=0, rtol=0)
    assert after[2].isnan().all()


def test_label_maps_are_the_convolution_of_the_planes_they_replace():
    for kernel, stride, (height, width), tile in [
        (5, 2, (28, 28), 1),
        (4, 2, (28, 28), 2),
        (4, 2, (8, 12), 2),
        (2, 2, (7, 9), 1),
        (5, 2, (3, 4), 1),
        (3, 1, (6, 5), 1),
        (3, 1, (6, 9), 3),
    ]:
        weight, bias = torch.randn(2, 4, kernel, kernel, 3).double(), torch.randn(2, 4).double()
        inside = stacked._inside(height, width, kernel, stride, tile)
        assert set(inside.unique().tolist()) <= {0.0, 1.0}
        maps = stacked._label_maps(weight, bias, (height, width), stride, tile)
        for index in range(2):
            planes = torch.eye(3).double()[:, :, None, None].expand(-1, -1, height, width)
            pads = (*same(width, kernel, stride)[1], *same(height, kernel, stride)[1])
            expected = F.conv2d(
                F.pad(planes, pads), weight[index].permute(0, 3, 1, 2), bias[index], stride
            )
            in_tiles = F.pixel_unshuffle(expected, tile)
            ordered = in_tiles.unflatten(1, (-1, tile * tile)).permute(0, 3, 4, 2, 1)
            torch.testing.assert_close(maps[index], ordered.flatten(1), atol=1e-12, rtol=1e-12)


def test_a_layer_of_whole_patches_reads_them_from_tiles_and_copies_none(monkeypatch):
    network = TEACHERS["compact"]((8, 8, 1), CLASSES, 6)
    own, _ = batches((8, 8, 1))
    shapes = []
    patches = stacked_layers._patches

    def seen(images, layout):
        found = patches(images, layout)
        shapes.append((images.shape[2:], found.data_ptr() == images.data_ptr()))
        return found

    monkeypatch.setattr(stacked_layers, "_patches", seen)
    stacked.logits(network, drawn(network), own)
    assert shapes == [((8, 8, 1), False), ((2, 2, 2, 2, 16), True)]


def test_same_padding_is_tensorflows():
    assert (
        same(28, 5, 2) == (14, (1, 2))
        and same(14, 5, 2) == (7, (1, 2))
        and same(7, 2, 2) == (4, (0, 1))
    )


def test_the_papers_teacher_has_the_papers_size_and_the_compact_one_its_own():
    def size(name, *shape):
        return sum(parameter.numel() for parameter in TEACHERS[name](shape, 10, 32).parameters())

    assert size("paper", 28, 28, 1) == 555_655 and size("paper", 32, 32, 3) == 720_237
    assert 45_000 <= size("compact", 28, 28, 1) <= 80_000


def test_first_weights_lie_within_one_over_root_fan_in_and_fill_it():
    network = TEACHERS["compact"]((8, 8, 1), CLASSES, 6)
    weights = stacked.initial(network, 400, torch.Generator().manual_seed(0))
    for number, fan_in in enumerate([16 * 4, 4 * 19, 32 * 4 + 3, 9]):
        for name in ("weight", "bias"):
            tensor = weights[f"layers.{number}.{name}"]
            assert 0.97 * fan_in**-0.5 < tensor.abs().max() <= fan_in**-0.5
            assert tensor.requires_grad and tensor.is_leaf
    assert torch.all(
        stacked.initial(TEACHERS["paper"]((8, 8, 1), 3, 6), 2, torch.Generator())["norms.1.scale"]
        == 1
    )


def test_images_of_a_batch_do_not_touch_each_other(teacher):
    """No teacher has batch statistics."""
    network, shape = teacher
    weights, ((images, labels), _) = drawn(network), batches(shape)
    module = plain(network, weights, 0)
    before = module(images[0], labels[0])
    images[0, 1:] += 100
    torch.testing.assert_close(module(images[0], labels[0])[0], before[0], atol=1e-5, rtol=1e-5)
    assert list(module.buffers()) == []
