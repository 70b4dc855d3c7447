"""Computes the two products of stacked teachers and their gradients.

Shapes have N for the teachers and B for the images of a batch. Images are [N, B, H, W, C], or lie
in tiles: [N, B, H / t, W / t, t, t, C]. A layer whose kernel and stride are t finds the pixels of
each of its patches side by side there, and copies none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from models.teachers import same


class Dense(torch.autograd.Function):
    """Applies a dense layer of each teacher to its own inputs.

    Autograd's own form would give the weight's gradient transposed, and copy it.
    """

    @staticmethod
    def forward(
        ctx, x: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor, maps: torch.Tensor
    ) -> torch.Tensor:
        """Returns [N, B, out].

        Args:
            x: [N, B, in].
            weight: [N, out, in].
            labels: One-hot [N, B, classes].
            maps: [N, classes, out], what each class adds.
        """
        ctx.save_for_backward(x, weight, labels)
        return torch.bmm(labels, maps).baddbmm_(x, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Returns the gradients to x, weight, labels (none) and maps."""
        x, weight, labels = ctx.saved_tensors
        to_x, to_weight, _, to_maps = ctx.needs_input_grad
        return (
            torch.bmm(gradient, weight) if to_x else None,
            torch.bmm(gradient.transpose(1, 2), x) if to_weight else None,
            None,
            torch.bmm(labels.transpose(1, 2), gradient) if to_maps else None,
        )


class Convolution(torch.autograd.Function):
    """Applies a convolution of each teacher to its own or to shared images.

    It is one product over unfolded patches per batch. Images that the teachers share (stride 0)
    are unfolded once.
    """

    @staticmethod
    def forward(
        ctx,
        weight: torch.Tensor,
        labels: torch.Tensor,
        maps: torch.Tensor,
        stride: int,
        tile: int,
        *batches: torch.Tensor,
    ) -> torch.Tensor:
        """Returns [N, all B, H', W', out], or the same in tiles.

        Args:
            weight: [N, out, k, k, C].
            labels: One-hot [N, all B, classes].
            maps: [N, classes, H' W' out], what each class adds, in the result's order.
            stride: The stride.
            tile: Pixels along one side of the result's tiles, a divisor of H' and W'. 1 for none.
            *batches: Images [N, B, H, W, C]. In tiles only where these have the kernel's side.
        """
        count, out, kernel = weight.shape[:3]
        layout = Layout.of(batches[0], kernel, stride, tile)
        result = weight.new_empty(count, labels.shape[1], *layout.grid, out)
        unfolded = []
        for x, flat in zip(batches, _flat_parts(result, batches)):
            images = x[:1] if x.stride(0) == 0 else x
            patches = _patches(images, layout)
            unfolded.append(patches if ctx.needs_input_grad[0] else None)
            each = patches.expand(count, -1, -1)
            torch.bmm(each, weight.flatten(2).transpose(1, 2), out=flat)
        result.view(count, labels.shape[1], -1).baddbmm_(labels, maps)
        ctx.layout = layout
        ctx.shapes = [x.shape for x in batches]
        ctx.save_for_backward(weight, labels, *unfolded)
        return result

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Returns the gradients to weight, labels, maps, stride, tile and each batch.

        Those to labels, stride and tile are none.
        """
        weight, labels, *unfolded = ctx.saved_tensors
        to_weight, _, to_maps, _, _, *to_batches = ctx.needs_input_grad
        flats = _flat_parts(gradient, ctx.shapes)
        kernels = weight.flatten(2)
        images = [None] * len(flats)
        for number, wanted in enumerate(to_batches):
            if wanted:
                taps = torch.bmm(flats[number], kernels)
                images[number] = _folded(taps, ctx.shapes[number], ctx.layout)
        return (
            _weight_gradient(flats, unfolded).view_as(weight) if to_weight else None,
            None,
            torch.bmm(labels.transpose(1, 2), gradient.flatten(2)) if to_maps else None,
            None,
            None,
            *images,
        )


@dataclass(frozen=True)
class Layout:
    """Says where a convolution's patches lie in its images, and its outputs in memory.

    Attributes:
        outputs: (height, width) of the output.
        padding: Pixels before and after, for rows and for columns.
        kernel: Pixels along one side of the kernel.
        stride: The stride.
        tile: Pixels along one side of the output's tiles; 1 for none.
    """

    outputs: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    kernel: int
    stride: int
    tile: int

    @classmethod
    def of(cls, images: torch.Tensor, kernel: int, stride: int, tile: int) -> "Layout":
        """Returns the layout of a SAME convolution.

        Args:
            images: The images, [N, B, H, W, C] or in tiles.
            kernel: Pixels along one side of the kernel.
            stride: The stride.
            tile: Pixels along one side of the output's tiles; 1 for none.
        """
        height, width = sides_of(images)
        rows, before_and_after = same(height, kernel, stride)
        columns, left_and_right = same(width, kernel, stride)
        padding = (before_and_after, left_and_right)
        return cls((rows, columns), padding, kernel, stride, tile)

    @property
    def grid(self) -> tuple[int, ...]:
        """Returns the shape of the output's pixels in memory."""
        height, width = self.outputs
        if self.tile == 1:
            return height, width
        return height // self.tile, width // self.tile, self.tile, self.tile


def sides_of(images: torch.Tensor) -> tuple[int, int]:
    """Returns (height, width) of images [N, B, H, W, C], or of images in tiles."""
    height, width, *tile = images.shape[2:-1]
    return (height * tile[0], width * tile[1]) if tile else (height, width)


def _flat_parts(result: torch.Tensor, batches: Sequence) -> list[torch.Tensor]:
    """Returns views [N, B H' W', out] of a result [N, all B, ..., out], one per batch.

    A batch may stand here by its shape.
    """
    sizes = [getattr(batch, "shape", batch)[1] for batch in batches]
    return [part.flatten(1, -2) for part in result.split(sizes, 1)]


def _weight_gradient(flats: list[torch.Tensor], unfolded: list[torch.Tensor]) -> torch.Tensor:
    """Returns [N, out, k k C], summed over the batches."""
    total = None
    for flat, patches in zip(flats, unfolded):
        product = torch.bmm(flat.transpose(1, 2), patches.expand(len(flat), -1, -1))
        total = product if total is None else total + product
    return total


def _patches(images: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Returns the patches [N, B H' W', k k C] of images, in the order of the output's pixels."""
    if images.ndim == 7:
        # a tile is a patch
        return images.flatten(4).flatten(1, 3)
    rows, columns = layout.padding
    padded = images
    if any((*rows, *columns)):
        padded = F.pad(images, (0, 0, *columns, *rows))
    padded = padded.contiguous()
    count, batch, _, _, channels = padded.shape
    teacher, image, row, column, _ = padded.stride()
    down = row * layout.stride
    across = column * layout.stride
    tile = layout.tile
    height, width = layout.outputs
    shape = (height // tile, width // tile, tile, tile, layout.kernel, layout.kernel * channels)
    steps = (down * tile, across * tile, down, across, row, 1)
    view = padded.as_strided((count, batch, *shape), (teacher, image, *steps))
    return view.reshape(count, batch * height * width, -1)


def _folded(taps: torch.Tensor, shape: torch.Size, layout: Layout) -> torch.Tensor:
    """Returns images of taps [N, B H' W', k k C]: the transpose of `_patches`.

    Every tap's part is added where it came from, and the padding is cut off.

    Args:
        taps: The gradients of the patches.
        shape: The shape of the images, in tiles or not.
        layout: Where the patches lie.
    """
    if len(shape) == 7:
        return taps.view(shape)
    count, batch, height, width, channels = shape
    kernel = layout.kernel
    stride = layout.stride
    tile = layout.tile
    down, across = layout.outputs
    taps = taps.view(
        count, batch, down // tile, across // tile, tile, tile, kernel, kernel, channels
    )
    taps = taps.transpose(3, 4).reshape(count, batch, down, across, kernel, kernel, channels)
    (above, below), (left, right) = layout.padding
    image = taps.new_zeros(count, batch, above + height + below, left + width + right, channels)
    for row in range(kernel):
        rows = image[:, :, row : row + stride * down : stride]
        for column in range(0, kernel, stride):
            # the next `stride` taps lie side by side in the image, and do not overlap
            part = taps[:, :, :, :, row, column : column + stride].flatten(4)
            places = rows.as_strided(
                part.shape,
                (*rows.stride()[:3], stride * channels, 1),
                rows.storage_offset() + column * channels,
            )
            places.add_(part)
    return image[:, :, above : above + height, left : left + width]
