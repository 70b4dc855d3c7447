"""Per-sample gradients by torch.func, clipped and summed: what DP-SGD and noisy full-batch steps release with noise.

Sensitivity: the clipping norm, when one record is added or removed. Noise and accounting are the caller's.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

CHUNK = 128  # records whose gradients are held at once: 32 MB for the paper's CNN; larger chunks are slower, too


def clipped_sum(
    model: nn.Module, images: torch.Tensor, labels: torch.Tensor, clipping_norm: float
) -> dict[str, torch.Tensor]:
    """Sum over records of gradients scaled to L2 norm <= clipping_norm over all parameters together.

    Adding or removing one record moves the sum by at most clipping_norm (and float rounding). An empty lot gives zeros.
    """
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    total = {name: torch.zeros_like(tensor) for name, tensor in weights.items()}
    for part in zip(images.split(CHUNK), labels.split(CHUNK)) if len(labels) else ():
        for name, addend in _clipped_sum(model, weights, *part, clipping_norm).items():
            total[name] += addend
    return total


def _clipped_sum(model, weights, images, labels, clipping_norm: float) -> dict[str, torch.Tensor]:
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
