"""Warps batches of images at random and adds pixel noise.

The warps are affine and elastic. All constants are public, so this is free post-processing of
synthetic images. Warps are measured on MNIST as the largest single gain of moment generators, and
harm on Fashion-MNIST. There noise is the gain: images of low frequencies alone teach a classifier
to trust in their smoothness. Hence options per data set, off unless its profile turns them on, and
recorded in the card.
"""

import torch
import torch.nn.functional as F

from pipelines.config.data import Augmentation

# draws of an image: for its affine map, and for a coarse elastic field
AFFINE = 6
ELASTIC = (2, 5, 5)


def warp(images: torch.Tensor, settings: Augmentation, generator: torch.Generator) -> torch.Tensor:
    """Warps every image by a rotation, scale, shear, shift and elastic field of its own.

    Then Gaussian noise is added to every pixel. Pixels are not cut to [0, 1].

    Args:
        images: float32 [B, C, H, W].
        settings: The most that each may be: rotation in radians, shift in pixels, scale and shear
            as factors. `elastic` is the field's strength in pixels, `noise` the standard deviation.
        generator: The random stream.

    Returns:
        float32 [B, C, H, W].

    >>> settings = Augmentation.model_construct(
    ...     rotation=0.0, scale=0.0, shear=0.0, shift=0.0, elastic=0.0, noise=0.0
    ... )
    >>> images = torch.ones(2, 1, 4, 4)
    >>> torch.allclose(warp(images, settings, torch.Generator().manual_seed(0)), images)
    True
    """
    count = len(images)
    draws = torch.rand(count, AFFINE, generator=generator, device=generator.device)
    coarse = None
    if settings.elastic > 0:
        coarse = torch.randn(count, *ELASTIC, generator=generator, device=generator.device)
    warped = warp_by(images, settings, draws, coarse)
    if settings.noise > 0:
        noise = torch.randn(images.shape, generator=generator, device=generator.device)
        warped = warped + settings.noise * noise.to(images.device)
    return warped


def warp_by(
    images: torch.Tensor, settings: Augmentation, draws: torch.Tensor, coarse: torch.Tensor | None
) -> torch.Tensor:
    """Warps every image as its own draws say.

    Args:
        images: float32 [B, C, H, W].
        settings: As in `warp`; `noise` is not read.
        draws: Uniform in [0, 1), [B, AFFINE].
        coarse: Normal, [B, *ELASTIC]; None without an elastic field.

    Returns:
        float32 [B, C, H, W].
    """
    height, width = images.shape[2:]
    affine = _affine(draws.to(images.device) * 2 - 1, settings, width, height)
    grid = F.affine_grid(affine, list(images.shape), align_corners=False)
    if coarse is not None:
        field = F.interpolate(
            coarse.to(images.device), (height, width), mode="bicubic", align_corners=True
        )
        pixel = torch.tensor([2 / width, 2 / height], device=images.device)
        grid = grid + field.permute(0, 2, 3, 1) * settings.elastic * pixel
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def _affine(rand: torch.Tensor, settings: Augmentation, width: int, height: int) -> torch.Tensor:
    """Returns the affine maps [B, 2, 3] of draws [B, 6] in [-1, 1]."""
    angle = rand[:, 0] * settings.rotation
    stretch = 1 + rand[:, 1:3] * settings.scale
    cos = angle.cos()
    sin = angle.sin()
    shear = rand[:, 3] * settings.shear
    shift = rand[:, 4:6] * settings.shift * 2 / torch.tensor([width, height], device=rand.device)
    row_x = torch.stack(
        [stretch[:, 0] * cos, stretch[:, 0] * (shear * cos - sin), shift[:, 0]], dim=1
    )
    row_y = torch.stack(
        [stretch[:, 1] * sin, stretch[:, 1] * (shear * sin + cos), shift[:, 1]], dim=1
    )
    return torch.stack([row_x, row_y], dim=1)
