"""Tests gradients layer by layer against torch.func record by record."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from models import classifiers
from pipelines.privacy import layerwise, per_sample
from pipelines.privacy.record_gradients import Formed, Outer


def gradients(
    model: nn.Module, images: torch.Tensor, labels: torch.Tensor, found
) -> tuple[dict, torch.Tensor]:
    """Returns the sum with random signs and sizes, and the norms, by one of the two ways."""
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    parts = found(model, weights, images, labels)
    scale = torch.randn(len(labels), generator=torch.Generator().manual_seed(9))
    total = {}
    for part in parts:
        total |= part.sum(torch.ones(len(labels), dtype=torch.bool), scale)
    return total, sum(part.squares() for part in parts).sqrt()


def agree(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> None:
    assert layerwise.serves(model)
    ours, norms = gradients(model, images, labels, layerwise.parts)
    theirs, theirs_norms = gradients(model, images, labels, per_sample._by_vmap)
    np.testing.assert_allclose(norms, theirs_norms, rtol=1e-4, atol=1e-7)
    assert set(ours) == {name for name, _ in model.named_parameters()}
    for name in theirs:
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-5, err_msg=name)


@settings(max_examples=25, deadline=None)
@given(
    channels=st.integers(1, 3),
    side=st.integers(8, 12),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    dilation=st.integers(1, 2),
    bias=st.booleans(),
    records=st.integers(1, 5),
)
def test_a_network_with_every_kind_of_layer(
    channels, side, kernel, stride, padding, dilation, bias, records
):
    torch.manual_seed(0)
    body = nn.Sequential(
        nn.Conv2d(channels, 4, kernel, stride, padding, dilation, bias=bias),
        nn.GroupNorm(2, 4),
        nn.Tanh(),
        nn.Sequential(nn.Conv2d(4, 6, 1), nn.ReLU(), nn.AvgPool2d(2, ceil_mode=True)),
    )
    images, labels = torch.rand(records, channels, side, side), torch.randint(3, (records,))
    flat = body(images).flatten(1).shape[1]
    agree(
        nn.Sequential(
            body, nn.Flatten(), nn.Linear(flat, 5, bias=bias), nn.ReLU(), nn.Linear(5, 3)
        ),
        images,
        labels,
    )


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(3, 2, (3, 2), stride=(2, 1), padding=(0, 2), dilation=(1, 2)),
        nn.Conv2d(3, 2, 5, padding=2),
        nn.Conv2d(3, 2, 1, stride=3),
        nn.Conv2d(3, 2, (9, 11)),
    ],
)
def test_patches_are_those_of_torch(layer, memory_format):
    images = torch.rand(5, 3, 9, 11)[1:].to(memory_format=memory_format)
    expected = torch.nn.functional.unfold(
        images, layer.kernel_size, layer.dilation, layer.padding, layer.stride
    )
    assert torch.equal(layerwise._patches(images, layer), expected)


def test_a_dense_layer_over_places():
    """Its gradient is no single outer product, and must be formed."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Flatten(2), nn.Linear(16, 4), nn.Tanh(), nn.Flatten(), nn.Linear(12, 3)
    )
    agree(model, torch.rand(4, 3, 4, 4), torch.randint(3, (4,)))


def test_group_norm_without_places():
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(16, 8), nn.GroupNorm(2, 8), nn.Tanh(), nn.Linear(8, 3)
    )
    agree(model, torch.rand(4, 1, 4, 4), torch.randint(3, (4,)))


def test_a_bare_layer():
    agree(
        nn.Sequential(nn.Flatten(), nn.Linear(16, 3)),
        torch.rand(4, 1, 4, 4),
        torch.tensor([0, 1, 2, 0]),
    )


def _hooked(layer: nn.Module) -> nn.Module:
    layer.register_forward_hook(lambda module, inputs, output: output - output.mean(0))
    return nn.Sequential(layer)


def _shared() -> nn.Module:
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.Tanh(), layer)


def _tied() -> nn.Module:
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    two.weight = one.weight
    return nn.Sequential(one, two)


class Centred(nn.Sequential):
    """Looks at the other records: no subclass may pass for its parent."""

    def forward(self, x):
        return super().forward(x - x.mean(0))


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)),
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2, affine=False)),
        nn.Sequential(nn.Linear(4, 4), nn.Dropout()),
        nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)),
        nn.Sequential(nn.Conv2d(2, 2, 3, groups=2)),
        nn.Sequential(nn.Conv2d(2, 2, 3, padding="same")),
        nn.Sequential(nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect")),
        nn.Sequential(nn.Flatten(0, 1), nn.Linear(4, 4)),
        _hooked(nn.Linear(4, 4)),
        _shared(),
        _tied(),
        Centred(nn.Linear(4, 4)),
    ],
    ids=lambda model: " ".join(str(model).split())[:40],
)
def test_it_does_not_serve_what_it_would_get_wrong(model):
    assert not layerwise.serves(model)


@pytest.mark.parametrize(("name", "served"), [("mlp", True), ("cnn", True), ("resnet", False)])
def test_the_projects_own_networks(name, served):
    assert (
        layerwise.serves(classifiers.build(name, shape=(16, 16, 1), classes=10, seed=0)) is served
    )


def test_batch_norm_is_refused_by_the_way_around():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 2))
    with pytest.raises(RuntimeError):
        per_sample.clipped_sum(model, torch.rand(3, 1, 4, 4), torch.tensor([0, 1, 0]), 1.0)


@pytest.mark.parametrize(("a", "g"), [(1e29, 1e-25), (1e-30, 1e29), (1e-25, 1e-3), (1e29, 1e-5)])
def test_factors_whose_squares_no_float_holds(a, g):
    """In floats g's square would be 0 and the norm with it: nothing would be clipped."""
    part = Outer("weight", None, torch.full((1, 2), a), torch.full((1, 3), g))
    norm = part.squares().sqrt()
    assert norm.item() == pytest.approx(np.sqrt(6.0) * a * g, rel=1e-5)
    (total,) = part.sum(norm.isfinite(), (1 / norm).float()).values()
    assert total.norm().item() <= 1 + 1e-5


@pytest.mark.parametrize(
    ("a", "g"), [(1e38, 1e-25), (1e-30, 1e33), (float("nan"), 1.0), (float("inf"), 0.0)]
)
def test_a_factor_that_leaves_a_scale_no_digits_makes_the_record_count_as_zero(a, g):
    part = Outer("weight", None, torch.full((1, 2), a), torch.full((1, 3), g))
    assert part.squares().item() == torch.inf


@pytest.mark.parametrize("clipping_norm", [1e-4, 0.1, 1.0])
@pytest.mark.parametrize("size", [1e10, 1e20, 1e25, 2.98e14, 1e29, 1e31])
def test_two_dense_layers_of_a_hostile_server_do_not_outgrow_the_clipping_norm(clipping_norm, size):
    """A huge activation, and a huge weight behind it: the norm is their product, and the scale near a float's end."""
    model = classifiers.build("papernot", shape=(28, 28, 1), classes=10, seed=0)
    names = dict(model.named_parameters())
    with torch.no_grad():
        for parameter in names.values():
            parameter.zero_()
        names["0.3.bias"][0], names["2.bias"][0], names["4.weight"][3, 0] = 1e30, 1.0, size
    image, label = torch.rand(1, 1, 28, 28), torch.tensor([1])
    total = per_sample.clipped_sum(model, image, label, clipping_norm)
    norm = torch.sqrt(sum(g.double().square().sum() for g in total.values())).item()
    assert norm <= clipping_norm * (1 + 1e-4)


def test_the_norm_of_a_long_row_is_not_understated():
    part = Formed({"w": torch.full((1, 3_000_000), 1e-3)}, {"w": torch.Size([3_000_000])})
    assert part.squares().item() == pytest.approx(3.0, rel=1e-6)


def test_positions_that_cancel_do_not_outgrow_the_clipping_norm():
    """Terms of 1e12 that sum to rounding: what is clipped must be what is summed."""
    torch.manual_seed(2)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.Tanh(), nn.AvgPool2d(6), nn.Flatten(), nn.Linear(4, 2)
    )
    with torch.no_grad():
        model[0].weight.mul_(1e-9)
        model[4].weight.mul_(1e12)
    images, labels = torch.rand(2, 1, 8, 8) - 0.5, torch.tensor([0, 1])
    for row in range(2):
        total = per_sample.clipped_sum(model, images[row : row + 1], labels[row : row + 1], 1.0)
        assert sum(g.square().sum() for g in total.values()).sqrt().item() <= 1 + 1e-5
