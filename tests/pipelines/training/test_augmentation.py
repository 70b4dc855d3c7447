"""Tests public warps: nothing at zero, images stay images, and each knob does what its unit says."""

import pytest
import torch

from pipelines.config.data import Augmentation
from pipelines.training.augmentation import warp

STILL = {"rotation": 0.0, "scale": 0.0, "shear": 0.0, "shift": 0.0, "elastic": 0.0, "noise": 0.0}
STRONG = {"rotation": 0.5, "scale": 0.3, "shear": 0.4, "shift": 3.0, "elastic": 2.0, "noise": 0.0}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def apply(images, seed: int = 0, **changes):
    return warp(images, Augmentation(**{**STILL, **changes}), generator(seed))


@pytest.fixture(params=[(8, 8, 1), (9, 6, 3)], ids=["grey", "colour"])
def images(request):
    height, width, channels = request.param
    return torch.rand(7, channels, height, width, generator=generator(9))


def test_all_zero_settings_are_the_identity(images):
    torch.testing.assert_close(apply(images), images, atol=1e-5, rtol=0)


@pytest.mark.parametrize("knob", sorted(set(STRONG) - {"noise"}))
def test_every_knob_changes_every_image(images, knob):
    changed = apply(images, **{knob: STRONG[knob]})
    assert torch.all((changed - images).flatten(1).abs().amax(1) > 1e-3)


def test_shape_type_and_range_stay(images):
    changed = apply(images, **STRONG)
    assert changed.shape == images.shape and changed.dtype == images.dtype
    assert changed.min() >= 0 and changed.max() <= 1 + 1e-5


def test_the_same_seed_warps_the_same_and_images_differ_from_each_other(images):
    torch.manual_seed(1)
    one = apply(images, **STRONG)
    torch.manual_seed(2)
    assert torch.equal(one, apply(images, **STRONG))
    assert not torch.equal(one, apply(images, seed=1, **STRONG))
    copies = apply(images[:1].expand(5, -1, -1, -1), **STRONG)
    assert all(not torch.equal(copies[0], other) for other in copies[1:])


def test_the_input_is_left_alone(images):
    before = images.clone()
    apply(images, **STRONG)
    assert torch.equal(images, before)


def centre_of_mass(images) -> torch.Tensor:
    height, width = images.shape[2:]
    mass = images.sum((1, 2, 3))
    rows = (images.sum((1, 3)) * torch.arange(height)).sum(1) / mass
    columns = (images.sum((1, 2)) * torch.arange(width)).sum(1) / mass
    return torch.stack([rows, columns], dim=1)


def blob(count: int, height: int = 31, width: int = 41) -> torch.Tensor:
    image = torch.zeros(count, 1, height, width)
    image[:, :, height // 2 - 2 : height // 2 + 3, width // 2 - 2 : width // 2 + 3] = 1.0
    return image


def test_shifts_are_uniform_in_pixels_on_either_axis():
    moved = centre_of_mass(apply(blob(2000), shift=4.0)) - centre_of_mass(blob(1))
    assert moved.abs().max() <= 4.001 and moved.abs().amax(0).min() > 3.9
    assert moved.mean(0).abs().max() < 0.35
    assert moved.std(0) == pytest.approx([8 / 12**0.5] * 2, rel=0.06)


def test_rotation_turns_by_at_most_its_radians():
    bar = torch.zeros(500, 1, 41, 41)
    bar[:, :, 20, 4:37] = 1.0
    turned = apply(bar, rotation=0.3).clamp(min=0)[:, 0]
    y, x = (
        axis - 20.0
        for axis in torch.meshgrid(torch.arange(41.0), torch.arange(41.0), indexing="ij")
    )
    angle = 0.5 * torch.atan2(
        2 * (turned * x * y).sum((1, 2)), (turned * (x**2 - y**2)).sum((1, 2))
    )
    assert angle.abs().max() <= 0.31 and angle.abs().max() > 0.27
    assert angle.std() == pytest.approx(0.6 / 12**0.5, rel=0.12)


def test_scale_changes_the_size_by_at_most_its_share():
    sizes = apply(blob(500, 31, 31), scale=0.2).sum((1, 2, 3)) / 25
    assert 1 / 1.2**2 * 0.97 <= sizes.min() < 0.8 and 1.35 < sizes.max() <= 1 / 0.8**2 * 1.03


def test_elastic_displacements_are_in_pixels():
    """A ramp of one grey level per pixel shows each displacement: standard normal times the setting, damped by the
    interpolation between the grid's nodes."""
    ramp = (torch.arange(101.0) / 101).expand(1, 1, 101, 101)
    moved = (apply(ramp.expand(200, -1, -1, -1), elastic=1.5) - ramp)[:, :, 20:-20, 20:-20] * 101
    assert 0.5 * 1.5 < moved.std().item() < 1.1 * 1.5


def test_noise_has_its_deviation_on_every_pixel_and_none_of_the_warps_change():
    images = torch.rand(50, 1, 20, 20, generator=generator(1))
    plain, noisy = (
        apply(images, seed=4, rotation=0.2),
        apply(images, seed=4, rotation=0.2, noise=0.3),
    )
    added = noisy - plain
    assert added.std().item() == pytest.approx(0.3, rel=0.02) and abs(added.mean().item()) < 0.01
    assert (added.flatten(1).std(0) > 0.15).all()
    assert noisy.min() < 0 and noisy.max() > 1  # not cut
