"""Computes the gradient of every record, layer by layer, in one forward and one backward pass.

A dense layer's gradient of one record is the outer product of what the layer's output wants (g) and
what went in (a). Its norm is |g| |a|, and the scaled sum over records is one matrix product, so it
is never formed (ghost clipping, Li et al. 2022, without its second pass). Other layers' gradients
are formed, a convolution's as a product with its patches.

>>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
>>> weights = {name: tensor.detach() for name, tensor in model.named_parameters()}
>>> (layer,) = parts(model, weights, torch.ones(3, 1, 2, 2), torch.tensor([0, 1, 0]))
>>> layer.squares().shape
torch.Size([3])
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
ALONE = (
    nn.Sequential,
    nn.ReLU,
    nn.Tanh,
    nn.MaxPool2d,
    nn.AvgPool2d,
    nn.ZeroPad2d,
    nn.ConstantPad1d,
)


def serves(model: nn.Module) -> bool:
    """Returns True if every module is known here, and nothing is shared or hooked.

    A module must be used once and have its weights to itself.
    """
    modules = list(_all(model))
    parameters = []
    for module in modules:
        if not _is_known(module) or getattr(module, "inplace", False):
            return False
        if module._forward_hooks or module._forward_pre_hooks:
            return False
        parameters += module.parameters(recurse=False)
    return _all_differ(modules) and _all_differ(parameters)


def _is_known(module: nn.Module) -> bool:
    known = type(module) in (*ALONE, nn.Linear, nn.GroupNorm) or _plain(module)
    return known or _is_fixed(module)


def _is_fixed(module: nn.Module) -> bool:
    """Returns True for a module without weights that declares to see one record at a time."""
    declares = getattr(module, "treats_records_alone", False) is True
    return declares and not list(module.parameters())


def _all_differ(things: list) -> bool:
    """Returns True if no object stands twice in the list."""
    return len(set(map(id, things))) == len(things)


def parts(
    model: nn.Module, weights: Sums, images: torch.Tensor, labels: torch.Tensor
) -> list[Formed | Outer]:
    """Returns the gradients of each record's cross-entropy, layer by layer.

    Args:
        model: A model that `serves`.
        weights: Detached tensors by name.
        images: [n, C, H, W].
        labels: int64 [n].
    """
    calls: list[tuple[str, nn.Module, torch.Tensor, torch.Tensor]] = []
    with _recorded(model, calls):
        loss = F.cross_entropy(functional_call(model, weights, (images,)), labels, reduction="sum")
    output_gradients = torch.autograd.grad(loss, [output for *_, output in calls])
    gradients = []
    for (name, layer, a, _), g in zip(calls, output_gradients):
        gradients.append(_part(name, layer, a, g, weights))
    return gradients


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
    if bias and isinstance(layer, nn.Linear):
        gradients[bias] = g.flatten(1, -2).sum(1)
    elif bias:
        gradients[bias] = _over_places(g)
    return Formed(gradients, {name: weights[name].shape for name in gradients})


@contextmanager
def _recorded(model: nn.Module, calls: list) -> Iterator[None]:
    """Makes each layer with weights enter (name, itself, input, output) when it is called."""

    def hook(name: str):
        def called(layer, inputs, output):
            # the first layer's: the pass back ends there, not at the image
            if not output.requires_grad:
                output.requires_grad_()
            calls.append((name, layer, inputs[0].detach(), output))

        return called

    handles = []
    for name, module in model.named_modules():
        if list(module.parameters(recurse=False)):
            handles.append(module.register_forward_hook(hook(name)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _all(model: nn.Module) -> Iterator[nn.Module]:
    """Yields every module as often as it stands in the model."""
    yield model
    for child in model.children() if not isinstance(model, nn.Sequential) else list(model):
        yield from _all(child)


def _patches(a: torch.Tensor, layer: nn.Conv2d) -> torch.Tensor:
    """Returns patches [n, C k k, places].

    It is F.unfold as a strided view that is copied once, in half its time and less.
    """
    rows, columns = layer.padding
    a = F.pad(a, (columns, columns, rows, rows))
    places = []
    within = []
    between = []
    for axis in (0, 1):
        side = a.shape[2 + axis]
        step = a.stride()[2 + axis]
        reach = layer.dilation[axis] * (layer.kernel_size[axis] - 1)
        places.append((side - reach - 1) // layer.stride[axis] + 1)
        within.append(step * layer.dilation[axis])
        between.append(step * layer.stride[axis])
    shape = (*a.shape[:2], *layer.kernel_size, *places)
    view = a.as_strided(shape, (*a.stride()[:2], *within, *between))
    return view.reshape(len(a), -1, math.prod(places))


def _over_places(g: torch.Tensor) -> torch.Tensor:
    """Sums g [n, C, ...] over places, to [n, C]."""
    return g.flatten(2).sum(2) if g.dim() > 2 else g


def _plain(module: nn.Module) -> bool:
    """Returns True for a flatten or a convolution whose arguments are served."""
    if type(module) is nn.Flatten:
        # else records are merged
        return module.start_dim > 0
    known = type(module) is nn.Conv2d and module.groups == 1 and module.padding_mode == "zeros"
    return known and not isinstance(module.padding, str)
