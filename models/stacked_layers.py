"""Computes the two products of stacked teachers and their gradients.

Shapes have N for the teachers and B for the images of a batch.
"""

from collections.abc import Sequence

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
    are unfolded once, and meet all their weights in one wide product.
    """

    @staticmethod
    def forward(
        ctx,
        weight: torch.Tensor,
        labels: torch.Tensor,
        maps: torch.Tensor,
        stride: int,
        *batches: torch.Tensor,
    ) -> torch.Tensor:
        """Returns [N, all B, H', W', out].

        Args:
            weight: [N, out, k, k, C].
            labels: One-hot [N, all B, classes].
            maps: [N, classes, H' W' out], what each class adds.
            stride: The stride.
            *batches: Images [N, B, H, W, C].
        """
        count, out, kernel = weight.shape[:3]
        height, rows = same(batches[0].shape[2], kernel, stride)
        width, columns = same(batches[0].shape[3], kernel, stride)
        result = weight.new_empty(count, labels.shape[1], height, width, out)
        unfolded = []
        for x, flat in zip(batches, _flat_parts(result, batches)):
            same_for_all = x.stride(0) == 0
            padded = F.pad(x[:1] if same_for_all else x, (0, 0, *columns, *rows)).contiguous()
            patches = _patches(padded, height, width, kernel, stride)
            unfolded.append(patches if ctx.needs_input_grad[0] else None)
            if same_for_all:
                product = patches[0] @ weight.view(count * out, -1).T
                flat.copy_(product.view(-1, count, out).transpose(0, 1))
            else:
                torch.bmm(patches, weight.flatten(2).transpose(1, 2), out=flat)
        result.view(count, labels.shape[1], -1).baddbmm_(labels, maps)
        ctx.geometry = (padded.shape[2:4], (rows[0], columns[0]), stride)
        ctx.shapes = [x.shape for x in batches]
        ctx.save_for_backward(weight, labels, *unfolded)
        return result

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Returns the gradients to weight, labels (none), maps, stride (none) and each batch."""
        weight, labels, *unfolded = ctx.saved_tensors
        to_weight, _, to_maps, _, *to_batches = ctx.needs_input_grad
        flats = _flat_parts(gradient, ctx.shapes)
        kernels = weight.flatten(2)
        height, width = gradient.shape[2:4]
        images = [None] * len(flats)
        for number, wanted in enumerate(to_batches):
            if wanted:
                batch, *sides = ctx.shapes[number][1:4]
                taps = torch.bmm(flats[number], kernels)
                taps = taps.view(len(weight), batch, height, width, *weight.shape[2:])
                images[number] = _folded(taps, sides, *ctx.geometry)
        return (
            _weight_gradient(flats, unfolded).view_as(weight) if to_weight else None,
            None,
            torch.bmm(labels.transpose(1, 2), gradient.flatten(2)) if to_maps else None,
            None,
            *images,
        )


def _flat_parts(result: torch.Tensor, batches: Sequence) -> list[torch.Tensor]:
    """Returns views [N, B H' W', out] of a result [N, all B, H', W', out], one per batch.

    A batch may stand here by its shape.
    """
    sizes = [getattr(batch, "shape", batch)[1] for batch in batches]
    return [part.flatten(1, 3) for part in result.split(sizes, 1)]


def _weight_gradient(flats: list[torch.Tensor], unfolded: list[torch.Tensor]) -> torch.Tensor:
    """Returns [N, out, k k C], summed over the batches."""
    total = None
    for flat, patches in zip(flats, unfolded):
        product = torch.bmm(flat.transpose(1, 2), patches.expand(len(flat), -1, -1))
        total = product if total is None else total + product
    return total


def _patches(
    padded: torch.Tensor, height: int, width: int, kernel: int, stride: int
) -> torch.Tensor:
    """Returns the patches [N, B H' W', k k C] of padded images."""
    count, batch, _, _, channels = padded.shape
    teacher, image, row, column, _ = padded.stride()
    shape = (count, batch, height, width, kernel, kernel * channels)
    view = padded.as_strided(shape, (teacher, image, row * stride, column * stride, row, 1))
    return view.reshape(count, batch * height * width, -1)


def _folded(
    taps: torch.Tensor,
    sides: tuple[int, int],
    padded: tuple[int, int],
    before: tuple[int, int],
    stride: int,
) -> torch.Tensor:
    """Returns images [N, B, H, W, C] of taps [N, B, H', W', k, k, C]: the transpose of `_patches`.

    Every tap's part is added where it came from, and the padding is cut off.
    """
    count, batch, height, width, kernel, _, channels = taps.shape
    if kernel == stride:
        # patches do not overlap
        whole = (count, batch, height * kernel, width * kernel, channels)
        image = taps.transpose(3, 4).reshape(whole)
    else:
        image = taps.new_zeros(count, batch, *padded, channels)
        for row in range(kernel):
            rows = slice(row, row + stride * height, stride)
            for column in range(kernel):
                columns = slice(column, column + stride * width, stride)
                image[:, :, rows, columns] += taps[:, :, :, :, row, column]
    return image[:, :, before[0] : before[0] + sides[0], before[1] : before[1] + sides[1]]
