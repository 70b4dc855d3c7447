"""The gradient of every record, layer by layer, from one forward and one backward pass over the batch.

A dense layer's gradient of one record is the outer product of what the layer's output wants (g) and what went in (a):
its norm is |g| |a|, and the scaled sum over records is one matrix product, so it is never formed (ghost clipping, Li et
al. 2022, without its second pass). Other layers' gradients are formed, a convolution's as a product with its patches.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from pipelines.privacy.record_gradients import Formed, Outer, Sums

# no weights, and no look at other records
ALONE = (nn.Sequential, nn.ReLU, nn.Tanh, nn.MaxPool2d, nn.AvgPool2d, nn.ZeroPad2d)


def serves(model: nn.Module) -> bool:
    """Whether every module is known here, used once, and has its weights to itself and nothing hooked to it."""
    modules = list(_all(model))
    held = [id(parameter) for module in modules for parameter in module.parameters(recurse=False)]
    known = all(
        type(module) in (*ALONE, nn.Linear, nn.GroupNorm) or _plain(module) for module in modules
    )
    in_place = any(getattr(module, "inplace", False) for module in modules)
    hooked = any(module._forward_hooks or module._forward_pre_hooks for module in modules)
    return (
        known
        and not (in_place or hooked)
        and len(set(map(id, modules))) == len(modules)
        and len(set(held)) == len(held)
    )


def parts(
    model: nn.Module, weights: Sums, images: torch.Tensor, labels: torch.Tensor
) -> list[Formed | Outer]:
    """The gradients of each record's cross-entropy in a model that `serves`; weights: {name: detached tensor}."""
    seen: list[tuple[str, nn.Module, torch.Tensor, torch.Tensor]] = []
    with _watched(model, seen):
        loss = F.cross_entropy(functional_call(model, weights, (images,)), labels, reduction="sum")
    wanted = torch.autograd.grad(loss, [output for *_, output in seen])
    return [_part(name, layer, a, g, weights) for (name, layer, a, _), g in zip(seen, wanted)]


def _part(
    name: str, layer: nn.Module, a: torch.Tensor, g: torch.Tensor, weights: Sums
) -> Formed | Outer:
    weight = f"{name}.weight".lstrip(".")
    bias = f"{name}.bias".lstrip(".") if layer.bias is not None else None
    if isinstance(layer, nn.Linear) and a.dim() == 2:
        return Outer(weight, bias, a, g)
    if isinstance(layer, nn.Linear):
        formed = torch.einsum("n...o,n...i->noi", g, a)
    elif isinstance(layer, nn.Conv2d):
        g = g.flatten(2)
        formed = torch.bmm(g, _patches(a, layer).transpose(1, 2))
    else:
        formed = _over_places(g * F.group_norm(a, layer.num_groups, eps=layer.eps))
    gradients = {weight: formed.flatten(1)}
    if bias:
        gradients[bias] = (
            g.flatten(1, -2).sum(1) if isinstance(layer, nn.Linear) else _over_places(g)
        )
    return Formed(gradients, {name: weights[name].shape for name in gradients})


@contextmanager
def _watched(model: nn.Module, seen: list) -> Iterator[None]:
    """Each layer with weights enters (name, itself, input, output) when it is called."""

    def hook(name: str):
        def called(layer, inputs, output):
            if (
                not output.requires_grad
            ):  # the first layer's: the pass back ends there, not at the image
                output.requires_grad_()
            seen.append((name, layer, inputs[0].detach(), output))

        return called

    layers = [
        (name, module)
        for name, module in model.named_modules()
        if list(module.parameters(recurse=False))
    ]
    handles = [module.register_forward_hook(hook(name)) for name, module in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _all(model: nn.Module) -> Iterator[nn.Module]:
    """Every module as often as it stands there."""
    yield model
    for child in model.children() if not isinstance(model, nn.Sequential) else list(model):
        yield from _all(child)


def _patches(a: torch.Tensor, layer: nn.Conv2d) -> torch.Tensor:
    """[n, C k k, places]: F.unfold as a strided view that is copied once, in half its time and less."""
    rows, columns = layer.padding
    a = F.pad(a, (columns, columns, rows, rows))
    steps = list(zip(a.shape[2:], a.stride()[2:], layer.kernel_size, layer.stride, layer.dilation))
    places = [
        (side - dilation * (kernel - 1) - 1) // stride + 1
        for side, _, kernel, stride, dilation in steps
    ]
    shape = (*a.shape[:2], *layer.kernel_size, *places)
    within = [step * dilation for _, step, _, _, dilation in steps]
    between = [step * stride for _, step, _, stride, _ in steps]
    view = a.as_strided(shape, (*a.stride()[:2], *within, *between))
    return view.reshape(len(a), -1, math.prod(places))


def _over_places(g: torch.Tensor) -> torch.Tensor:
    """[n, C, ...] -> [n, C]."""
    return g.flatten(2).sum(2) if g.dim() > 2 else g


def _plain(module: nn.Module) -> bool:
    if type(module) is nn.Flatten:
        return module.start_dim > 0  # else records are merged
    known = type(module) is nn.Conv2d and module.groups == 1 and module.padding_mode == "zeros"
    return known and not isinstance(module.padding, str)
