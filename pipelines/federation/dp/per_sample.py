"""Per-sample gradients by torch.func, clipped and summed: the part of DP-SGD whose sensitivity is the clipping norm."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

CHUNK = 256  # records at once: their gradients take records x weights


def clipped_sum(
    model: nn.Module, images: torch.Tensor, labels: torch.Tensor, clipping_norm: float
) -> dict[str, torch.Tensor]:
    """Sum over records of gradients scaled to L2 norm <= clipping_norm over all parameters together.

    Adding or removing one record moves the sum by at most clipping_norm. An empty lot gives zeros.
    """
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    total = {name: torch.zeros_like(tensor) for name, tensor in weights.items()}
    for start in range(0, len(labels), CHUNK):
        rows = slice(start, start + CHUNK)
        for name, part in _chunk_sum(model, weights, images[rows], labels[rows], clipping_norm).items():
            total[name] += part
    return total


def _chunk_sum(
    model: nn.Module, weights: dict, images: torch.Tensor, labels: torch.Tensor, clipping_norm: float
) -> dict[str, torch.Tensor]:
    def loss(parameters, image, label):
        return F.cross_entropy(functional_call(model, parameters, (image[None],)), label[None])

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(weights, images, labels)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
    # a hostile server's huge weights must not let one record turn the sum into NaN: its gradient counts as zero
    finite = norms.isfinite()
    gradients = {name: torch.where(finite.view(-1, *[1] * (g.dim() - 1)), g, 0.0) for name, g in gradients.items()}
    scale = (clipping_norm / norms.clamp(min=1e-12)).clamp(max=1.0) * finite
    scale = scale.nan_to_num(nan=0.0)
    return {name: torch.einsum("n,n...->...", scale, g) for name, g in gradients.items()}
