"""Computes the scattering transform of small images: fixed wavelets, a modulus, and averages.

An image is convolved with Morlet wavelets of two scales and eight angles, and the modulus is taken.
A Gaussian averages the result (order 1). The moduli of the finer scale are convolved with the
coarser wavelets and averaged too (order 2). Nothing is learned, and no image sees another. The
filters follow Bruna and Mallat (2013) with the constants of kymatio 0.3.0, whose numbers and
channel order this module reproduces for J = 2, L = 8.

>>> scattering = Scattering(28, 28)
>>> scattering(torch.zeros(2, 1, 28, 28)).shape
torch.Size([2, 81, 7, 7])
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# J, the number of scales: a map's sides shrink by 2^J
SCALES = 2
# L, the number of angles
ANGLES = 8
# of order 0, 1 and 2, for each colour
CHANNELS = 1 + SCALES * ANGLES + ANGLES**2
# channels that are normalised together
GROUP = 3
# pixels, the least side of an image
SMALLEST_SIDE = 8
# images whose maps are held at once: more leave a CPU's cache, and take longer
AT_ONCE = 16


class Scattering(nn.Module):
    """Maps images [B, C, H, W] to scattering coefficients [B, C * 81, H // 4, W // 4].

    The channels of a colour stand together. They are order 0; order 1, scale by scale; order 2, by
    the angle of the first wavelet and then of the second. The module has no parameters, and its
    filters are no part of a model's state.

    Args:
        height: The rows of an image, 8 or more.
        width: The columns of an image, 8 or more.
        dtype: The precision of the filters, and so of the transform.

    Raises:
        RuntimeError: A side is below 8 pixels.
    """

    # of layerwise gradients (pipelines/privacy/layerwise.py): no weights, no look at other records
    treats_records_alone = True

    def __init__(self, height: int, width: int, dtype: torch.dtype = torch.float32):
        super().__init__()
        if min(height, width) < SMALLEST_SIDE:
            raise RuntimeError(
                f"The scattering transform needs images of at least {SMALLEST_SIDE} by "
                f"{SMALLEST_SIDE} pixels. Got {height} by {width} instead."
            )
        rows = padded_side(height)
        columns = padded_side(width)
        self.margins = (*_margins(width, columns), *_margins(height, rows))
        fine, coarse = band_passes(rows, columns)
        self._fix("fine", fine, dtype)
        # the quarter is that of the mean over aliases
        self._fix("coarse", _by_alias(coarse / 4), dtype)
        self.halves = (rows // 2, columns // 2)
        for name, side in (("rows", rows), ("columns", columns)):
            self._fix(f"full_{name}", averaging(side, halved=False), dtype)
            self._fix(f"half_{name}", averaging(side, halved=True), dtype)

    def _fix(self, name: str, values: np.ndarray, dtype: torch.dtype) -> None:
        self.register_buffer(name, torch.from_numpy(values).to(dtype), persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Returns the coefficients [B, C * 81, H // 4, W // 4] of images [B, C, H, W]."""
        padded = F.pad(images.contiguous(), self.margins, mode="reflect")
        maps = []
        for part in padded.flatten(0, 1).split(AT_ONCE):
            maps.append(self._transformed(part))
        return torch.cat(maps).unflatten(0, images.shape[:2]).flatten(1, 2)

    def _transformed(self, images: torch.Tensor) -> torch.Tensor:
        """Returns the coefficients [b, 81, h, w] of padded images [b, M, N]."""
        full = (self.full_rows, self.full_columns)
        half = (self.half_rows, self.half_columns)
        spectra = torch.fft.fft2(images)
        fine = torch.fft.ifft2(spectra[:, None] * self.fine).abs()
        maps = [_averaged(images[:, None], *full), _averaged(fine, *full)]
        maps.append(_averaged(self._coarse_modulus(spectra), *half))
        fine_spectra = torch.fft.fft2(fine)
        for angle in range(ANGLES):
            maps.append(_averaged(self._coarse_modulus(fine_spectra[:, angle]), *half))
        return torch.cat(maps, 1)

    def _coarse_modulus(self, spectra: torch.Tensor) -> torch.Tensor:
        """Returns |z * psi_1| [b, 8, M / 2, N / 2], at every second row and column of maps z.

        In the Fourier domain, to leave out pixels is to sum over aliases.

        Args:
            spectra: Complex [b, M, N], of the maps.
        """
        parts = _aliases(torch.view_as_real(spectra), axis=1)
        bands = self.coarse.view(len(parts), ANGLES, *self.halves, 2)
        total = parts[0][:, None] * bands[0]
        for part, band in zip(parts[1:], bands[1:]):
            total.addcmul_(part[:, None], band)
        return torch.fft.ifft2(torch.view_as_complex(total)).abs()


def normalised(coefficients: torch.Tensor) -> torch.Tensor:
    """Returns features [B, D] of norm about 1: group norm per image, flattened, over sqrt(D).

    A group is three consecutive channels of one image, so 27 groups for each colour. Its mean
    becomes 0 and its variance 1.

    Args:
        coefficients: [B, C * 81, h, w], of `Scattering`.
    """
    groups = coefficients.shape[1] // GROUP
    features = F.group_norm(coefficients, groups, eps=1e-5).flatten(1)
    return features / math.sqrt(features.shape[1])


def padded_side(side: int) -> int:
    """Returns the side of a padded image, a multiple of 4.

    >>> padded_side(28), padded_side(32), padded_side(8)
    (36, 40, 16)
    """
    step = 2**SCALES
    return ((side + step) // step + 1) * step


def _margins(side: int, padded: int) -> tuple[int, int]:
    first = (padded - side) // 2
    return first, padded - side - first


def band_passes(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the spectra of the wavelets of both scales, each float64 [8, rows, columns]."""
    scales = []
    for scale in range(SCALES):
        spectra = []
        for number in range(ANGLES):
            angle = (ANGLES - ANGLES // 2 - 1 - number) * math.pi / ANGLES
            filter_ = morlet(rows, columns, 0.8 * 2**scale, angle, 0.75 * math.pi / 2**scale)
            # the imaginary part is a rounding error
            spectra.append(np.fft.fft2(filter_).real)
        scales.append(np.stack(spectra))
    return scales[0], scales[1]


def morlet(rows: int, columns: int, sigma: float, angle: float, frequency: float) -> np.ndarray:
    """Returns a wavelet, complex128 [rows, columns]: a Gabor function less its envelope's share.

    It sums to 0, so that a constant image has no coefficients but that of order 0.

    Args:
        rows: The rows of the grid.
        columns: The columns of the grid.
        sigma: The width of the envelope, in pixels.
        angle: The direction of the wave, in radians.
        frequency: Radians per pixel.
    """
    wave = _gabor(rows, columns, sigma, angle, frequency)
    envelope = _gabor(rows, columns, sigma, angle, 0.0)
    return wave - wave.sum() / envelope.sum() * envelope


def _gabor(rows: int, columns: int, sigma: float, angle: float, frequency: float) -> np.ndarray:
    """Returns a periodic Gabor function: the sum of its copies, shifted by whole grids."""
    slant = 4 / ANGLES
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    form = turn @ np.diag([1, slant**2]) @ turn.T / (2 * sigma**2)
    x = np.arange(-2 * rows, 3 * rows)[:, None]
    y = np.arange(-2 * columns, 3 * columns)[None]
    decay = form[0, 0] * x**2 + (form[0, 1] + form[1, 0]) * x * y + form[1, 1] * y**2
    phase = frequency * (x * math.cos(angle) + y * math.sin(angle))
    copies = np.exp(-decay + 1j * phase).reshape(5, rows, 5, columns)
    return copies.sum((0, 2)) * slant / (2 * math.pi * sigma**2)


def averaging(side: int, *, halved: bool) -> np.ndarray:
    """Returns the Gaussian average along one axis as a matrix, float64 [side / 4 - 2, n].

    The two-dimensional Gaussian is a product, so that rows and columns are averaged one after the
    other. The average is taken at every fourth pixel of the padded side, without both ends.

    Args:
        side: The padded side.
        halved: True for maps that hold every second pixel, n = side / 2; else n = side.
    """
    sigma = 0.8 * 2 ** (SCALES - 1)
    places = np.arange(-2 * side, 3 * side)
    gaussian = np.exp(-(places**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)
    spectrum = np.fft.fft(gaussian.reshape(5, side).sum(0)).real
    step = 2**SCALES
    if halved:
        # what lies above the new Nyquist frequency would come back as an alias
        spectrum[side // 4 : side - side // 4] = 0
        spectrum = spectrum.reshape(2, side // 2).sum(0)
        step //= 2
    # column i is the response to a pixel at i
    response = np.fft.ifft(spectrum[:, None] * np.fft.fft(np.eye(len(spectrum)), axis=0), axis=0)
    return response.real[::step][1:-1].copy()


def _averaged(maps: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Returns averages [b, c, h, w] of maps [b, c, M, N]."""
    return rows @ (maps @ columns.T)


def _by_alias(spectra: np.ndarray) -> np.ndarray:
    """Returns the four parts of spectra that fall on one another, [4 * 8, M / 2, N].

    Each number stands twice, beside the real and the imaginary part that it multiplies.
    """
    return np.concatenate(_aliases(spectra, axis=1)).repeat(2, axis=-1)


def _aliases(spectra, axis: int) -> list:
    """Returns the four quarters of two axes, of which `axis` is the first."""
    before = (slice(None),) * axis
    parts = []
    for rows in _halves(spectra.shape[axis]):
        for columns in _halves(spectra.shape[axis + 1]):
            parts.append(spectra[(*before, rows, columns)])
    return parts


def _halves(side: int) -> tuple[slice, slice]:
    return slice(0, side // 2), slice(side // 2, side)
