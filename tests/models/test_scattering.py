"""Tests the scattering transform against convolutions that are summed by hand, kymatio's numbers
where they are known, and its laws.
"""

import math

import numpy as np
import pytest
import torch

from models.scattering import (
    ANGLES,
    Scattering,
    averaging,
    band_passes,
    morlet,
    normalised,
    padded_side,
)

DOUBLE = torch.float64


def picture(side: int = 28) -> torch.Tensor:
    """Returns a picture with waves and an edge, float32 [1, 1, side, side]."""
    x = torch.linspace(0, 1, side)
    waves = 0.5 + 0.3 * torch.cos(9 * x)[:, None] * torch.sin(7 * x)
    edge = 0.2 * (x[:, None] > x[None]).float()
    return (waves + edge).clamp(0, 1)[None, None]


def convolved(image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Returns the circular convolution, pixel by pixel."""
    rows, columns = image.shape
    result = np.zeros(image.shape, complex)
    for row in range(rows):
        for column in range(columns):
            result += image[row, column] * np.roll(kernel, (row, column), (0, 1))
    return result


def gaussian(side: int, sigma: float) -> np.ndarray:
    places = np.arange(side)
    total = sum(np.exp(-((places + k * side) ** 2) / (2 * sigma**2)) for k in range(-3, 4))
    return total / (math.sqrt(2 * math.pi) * sigma)


def on_half_grid(filter_: np.ndarray) -> np.ndarray:
    """Returns what a one-dimensional filter is for every second pixel: without high frequencies."""
    spectrum = np.fft.fft(filter_).real
    side = len(filter_)
    spectrum[side // 4 : side - side // 4] = 0
    folded = spectrum[: side // 2] + spectrum[side // 2 :]
    return np.fft.ifft(folded).real


def naive(image: np.ndarray) -> list[np.ndarray]:
    """Returns the channels of one padded square image, in order, by sums over pixels alone."""
    side = len(image)
    low = gaussian(side, 1.6)
    full = np.outer(low, low)
    half = np.outer(on_half_grid(low), on_half_grid(low))
    wavelets = {}
    for scale in (0, 1):
        for number in range(8):
            angle = (3 - number) * math.pi / 8
            wavelets[scale, number] = morlet(
                side, side, 0.8 * 2**scale, angle, 0.75 * np.pi / 2**scale
            )

    def average(moduli, kernel, step):
        return convolved(moduli, kernel).real[::step, ::step][1:-1, 1:-1]

    def coarse(moduli, number):
        return np.abs(convolved(moduli, wavelets[1, number])[::2, ::2])

    fine = [np.abs(convolved(image, wavelets[0, number])) for number in range(8)]
    channels = [average(image, full, 4)]
    channels += [average(moduli, full, 4) for moduli in fine]
    channels += [average(coarse(image, number), half, 2) for number in range(8)]
    for moduli in fine:
        channels += [average(coarse(moduli, number), half, 2) for number in range(8)]
    return channels


def test_it_is_what_sums_over_pixels_give():
    image = torch.rand(1, 1, 8, 8, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    found = Scattering(8, 8, DOUBLE)(image)[0]
    padded = np.pad(image[0, 0].numpy(), 4, mode="reflect")
    np.testing.assert_allclose(found, np.stack(naive(padded)), atol=1e-12)


@pytest.mark.parametrize(("height", "width", "channels"), [(28, 28, 1), (32, 32, 3), (9, 30, 2)])
def test_it_is_kymatio_s(height, width, channels):
    reason = "kymatio 0.3.0, an oracle in tests alone, is not installed"
    kymatio = pytest.importorskip("kymatio.torch", reason=reason)
    images = torch.rand(3, channels, height, width, generator=torch.Generator().manual_seed(0))
    theirs = kymatio.Scattering2D(J=2, L=8, shape=(height, width))(images).flatten(1, 2)
    torch.testing.assert_close(Scattering(height, width)(images), theirs, atol=5e-5, rtol=0)


def test_some_coefficients_are_those_that_kymatio_printed():
    """They are of kymatio 0.3.0 under torch 2.13: channel, and values at (0, 0), (3, 4), (6, 2)."""
    printed = {
        0: (0.64883, 0.6364, 0.67057),
        1: (0.01134, 0.00746, 0.00781),
        5: (0.01557, 0.01544, 0.01647),
        8: (0.00562, 0.00597, 0.00332),
        9: (0.00676, 0.01575, 0.01457),
        16: (0.00478, 0.00732, 0.00382),
        17: (0.00136, 0.00056, 0.00034),
        20: (0.0009, 0.00083, 0.00053),
        44: (0.00054, 0.00155, 0.00088),
        80: (0.0027, 0.00114, 0.00084),
    }
    found = Scattering(28, 28)(picture())[0]
    for channel, values in printed.items():
        for (row, column), value in zip(((0, 0), (3, 4), (6, 2)), values):
            assert found[channel, row, column].item() == pytest.approx(value, abs=3e-5)


@pytest.mark.parametrize(("height", "width"), [(8, 8), (9, 15), (28, 28), (29, 64), (32, 32)])
def test_the_shape_and_that_colours_are_apart(height, width):
    images = torch.rand(2, 3, height, width)
    scattering = Scattering(height, width)
    found = scattering(images)
    assert found.shape == (2, 3 * 81, height // 4, width // 4)
    torch.testing.assert_close(found[:, 81:162], scattering(images[:, 1:2]))


@pytest.mark.parametrize("side", [7, 1])
def test_images_that_are_too_small_are_refused(side):
    with pytest.raises(RuntimeError, match=f"at least 8 by 8 pixels. Got 8 by {side} instead"):
        Scattering(8, side)


def test_a_constant_image_has_order_zero_alone():
    found = Scattering(28, 28, DOUBLE)(torch.full((1, 1, 28, 28), 0.7, dtype=DOUBLE))
    torch.testing.assert_close(
        found[:, 0], torch.full((1, 7, 7), 0.7, dtype=DOUBLE), atol=1e-4, rtol=0
    )
    assert found[:, 1:].abs().max() < 1e-12


def test_a_shift_by_a_stride_shifts_the_coefficients():
    """Without the padding, which is no part of the law."""
    scattering = Scattering(28, 28, DOUBLE)
    padded = torch.rand(1, 36, 36, dtype=DOUBLE)
    before = scattering._transformed(padded)
    after = scattering._transformed(padded.roll((4, -8), (1, 2)))
    torch.testing.assert_close(after[..., 1:, :-2], before[..., :-1, 2:])


def test_no_energy_is_gained_and_no_distance():
    """The filters cover no frequency by more than one, so that the transform is non-expansive."""
    side = padded_side(28)
    low = np.fft.fft(gaussian(side, 1.6)).real
    cover = np.outer(low, low) ** 2
    for spectra in band_passes(side, side):
        for spectrum in spectra:
            mirrored = np.roll(spectrum[::-1, ::-1], (1, 1), (0, 1))
            cover += (spectrum**2 + mirrored**2) / 2
    assert cover.max() < 1.01
    scattering = Scattering(28, 28, DOUBLE)
    one, other = torch.rand(2, 36, 36, dtype=DOUBLE)
    for images in (one, one - 0.5, 0.1 * other):
        # a coefficient stands for four by four pixels
        energy = 16 * scattering._transformed(images[None]).square().sum()
        assert energy < 1.01 * images.square().sum()
    difference = scattering._transformed(one[None]) - scattering._transformed(other[None])
    assert 16 * difference.square().sum() < 1.01 * (one - other).square().sum()


def test_the_gaussian_of_every_second_pixel_keeps_a_slow_wave():
    side = padded_side(28)
    wave = np.cos(2 * np.pi * np.arange(side) / side)
    full = averaging(side, halved=False) @ wave
    np.testing.assert_allclose(averaging(side, halved=True) @ wave[::2], full, atol=1e-6)


def test_a_turned_picture_turns_the_angles():
    """A quarter turn moves the angles of order 1 by half of them."""
    scattering = Scattering(28, 28, DOUBLE)
    # nothing lies at the border, whose pixels are left out
    window = torch.exp(-(torch.linspace(-3, 3, 36, dtype=DOUBLE) ** 2))
    padded = picture(36).double()[0] * window[:, None] * window
    turned = scattering._transformed(padded.rot90(1, (1, 2)))[0, 1:9].sum((1, 2))
    straight = scattering._transformed(padded)[0, 1:9].sum((1, 2))
    torch.testing.assert_close(turned.roll(ANGLES // 2), straight, rtol=0.05, atol=0)


def test_a_group_of_three_channels_has_mean_zero_and_variance_one():
    coefficients = torch.rand(2, 2 * 81, 5, 6) * torch.rand(2, 2 * 81, 1, 1)
    features = normalised(coefficients)
    assert features.shape == (2, 2 * 81 * 30)
    groups = features.view(2, 54, 90) * math.sqrt(features.shape[1])
    torch.testing.assert_close(groups.mean(2), torch.zeros(2, 54), atol=1e-5, rtol=0)
    variances = coefficients.view(2, 54, 90).var(2, unbiased=False)
    expected = variances / (variances + 1e-5)
    torch.testing.assert_close(groups.var(2, unbiased=False), expected, atol=1e-4, rtol=0)
    torch.testing.assert_close(features.norm(dim=1), torch.ones(2), atol=1e-3, rtol=0)


def test_an_image_does_not_see_the_others_and_nothing_is_learned():
    scattering = Scattering(12, 12)
    images = torch.rand(40, 1, 12, 12)
    torch.testing.assert_close(scattering(images)[7:8], scattering(images[7:8]), atol=1e-6, rtol=0)
    assert not list(scattering.parameters()) and not scattering.state_dict()
