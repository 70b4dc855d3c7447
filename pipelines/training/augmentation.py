"""Random affine and elastic warps of a batch and pixel noise, on public constants: free post-processing on synthetic
images.

Warps are measured on MNIST as the largest single gain of moment generators, and harm on Fashion-MNIST. There noise is
the gain: images of low frequencies alone teach a classifier to trust in their smoothness. Hence options per data set,
off unless its profile turns them on, and recorded in the card.
"""

import torch
import torch.nn.functional as F

from pipelines.config.data import Augmentation

ELASTIC_GRID = 5


def warp(images: torch.Tensor, settings: Augmentation, generator: torch.Generator) -> torch.Tensor:
    """[B, C, H, W], each image warped by its own rotation (radians), scale, shear, shift and elastic field (pixels);
    then Gaussian `noise` of that deviation on every pixel, not cut to [0, 1]."""
    count, _, height, width = images.shape
    rand = (
        torch.rand(count, 6, generator=generator, device=generator.device).to(images.device) * 2 - 1
    )
    angle = rand[:, 0] * settings.rotation
    stretch = 1 + rand[:, 1:3] * settings.scale
    cos, sin, shear = angle.cos(), angle.sin(), rand[:, 3] * settings.shear
    shift = rand[:, 4:6] * settings.shift * 2 / torch.tensor([width, height], device=images.device)
    row_x = torch.stack(
        [stretch[:, 0] * cos, stretch[:, 0] * (shear * cos - sin), shift[:, 0]], dim=1
    )
    row_y = torch.stack(
        [stretch[:, 1] * sin, stretch[:, 1] * (shear * sin + cos), shift[:, 1]], dim=1
    )
    grid = F.affine_grid(
        torch.stack([row_x, row_y], dim=1), list(images.shape), align_corners=False
    )
    if settings.elastic > 0:
        coarse = torch.randn(
            count, 2, ELASTIC_GRID, ELASTIC_GRID, generator=generator, device=generator.device
        )
        field = F.interpolate(
            coarse.to(images.device), (height, width), mode="bicubic", align_corners=True
        )
        pixel = torch.tensor([2 / width, 2 / height], device=images.device)
        grid = grid + field.permute(0, 2, 3, 1) * settings.elastic * pixel
    warped = F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    if settings.noise > 0:
        draws = torch.randn(images.shape, generator=generator, device=generator.device)
        warped = warped + settings.noise * draws.to(images.device)
    return warped
