import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer

from models import classifiers
from pipelines.privacy import per_sample
from pipelines.privacy.per_sample import clipped_sum


@pytest.mark.parametrize(("name", "side"), [("mlp", 8), ("cnn", 16)])
@pytest.mark.parametrize("clipping_norm", [0.1, 1.0, 1e6])
def test_equals_a_loop_of_single_record_backward_passes(name, side, clipping_norm):
    model = classifiers.build(name, shape=(side, side, 1), classes=10, seed=0)
    torch.manual_seed(1)
    images, labels = torch.rand(7, 1, side, side), torch.randint(10, (7,))
    expected = {key: torch.zeros_like(p) for key, p in model.named_parameters()}
    for image, label in zip(images, labels):
        gradients = torch.autograd.grad(
            F.cross_entropy(model(image[None]), label[None]), list(model.parameters())
        )
        norm = torch.sqrt(sum(g.square().sum() for g in gradients))
        for key, g in zip(expected, gradients):
            expected[key] += g * min(1.0, clipping_norm / norm.item())
    total = clipped_sum(model, images, labels, clipping_norm)
    for key in expected:
        np.testing.assert_allclose(total[key].numpy(), expected[key].numpy(), atol=1e-5)


def test_adding_a_record_moves_the_sum_by_at_most_the_clipping_norm():
    model = classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)
    torch.manual_seed(2)
    images, labels = (
        torch.rand(6, 1, 8, 8) * 100,
        torch.randint(10, (6,)),
    )  # huge inputs: every gradient is clipped
    whole = clipped_sum(model, images, labels, 1.0)
    moves = []
    for left_out in range(6):
        rest = [i for i in range(6) if i != left_out]
        part = clipped_sum(model, images[rest], labels[rest], 1.0)
        moves.append(torch.sqrt(sum((whole[k] - part[k]).square().sum() for k in whole)).item())
    assert max(moves) <= 1.0 + 1e-5
    assert max(moves) > 0.99


def opacus_sum(model, images, labels, clipping_norm: float) -> list[torch.Tensor]:
    """Computes Opacus' sum by its hooks and its optimiser's clipping, without noise."""
    wrapped = GradSampleModule(copy.deepcopy(model))
    optimiser = DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=1.0),
        noise_multiplier=0.0,
        max_grad_norm=clipping_norm,
        expected_batch_size=1,
    )
    F.cross_entropy(wrapped(images), labels).backward()
    optimiser.clip_and_accumulate()
    return [parameter.summed_grad for parameter in wrapped.parameters()]


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_equals_opacus(name):
    model = classifiers.build(name, shape=(16, 16, 1), classes=10, seed=0)
    torch.manual_seed(5)
    images, labels = torch.rand(9, 1, 16, 16), torch.randint(10, (9,))
    ours = clipped_sum(model, images, labels, 0.5)
    for (key, total), other in zip(ours.items(), opacus_sum(model, images, labels, 0.5)):
        np.testing.assert_allclose(total, other, atol=1e-6, err_msg=key)


def test_a_scale_of_ones_sums_the_gradients_and_tells_their_norms():
    model = classifiers.build("cnn", shape=(16, 16, 1), classes=10, seed=0)
    torch.manual_seed(6)
    images, labels = torch.rand(5, 1, 16, 16), torch.randint(10, (5,))
    total, norms = per_sample.scaled_sum(model, per_sample.Lot(images, labels, torch.ones_like))
    whole = torch.autograd.grad(
        F.cross_entropy(model(images), labels, reduction="sum"), list(model.parameters())
    )
    for ours, theirs in zip(total.values(), whole):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    for row in range(5):
        (one,) = (clipped_sum(model, images[row : row + 1], labels[row : row + 1], 1e9),)
        assert norms[row] == pytest.approx(
            sum(g.square().sum() for g in one.values()).sqrt().item(), rel=1e-5
        )


def test_chunks_do_not_change_the_sum(monkeypatch):
    model = classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)
    torch.manual_seed(4)
    images, labels = torch.rand(7, 1, 8, 8), torch.randint(10, (7,))
    whole = clipped_sum(model, images, labels, 0.1)
    monkeypatch.setattr(per_sample, "CHUNK", 3)
    parts = clipped_sum(model, images, labels, 0.1)
    for name in whole:
        np.testing.assert_allclose(parts[name].numpy(), whole[name].numpy(), atol=1e-6)


def test_a_large_network_has_fewer_records_at_once(monkeypatch):
    """Only vmap serves this network, and it holds the records' whole gradients.

    Those of ResNet-18 are 45 MB each.
    """
    model = classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)
    torch.manual_seed(4)
    images, labels, held = torch.rand(7, 1, 8, 8), torch.randint(10, (7,)), []
    whole, by_vmap = clipped_sum(model, images, labels, 0.1), per_sample._by_vmap
    monkeypatch.setattr(per_sample.layerwise, "serves", lambda model: False)
    monkeypatch.setattr(
        per_sample, "_by_vmap", lambda *given: held.append(len(given[-1])) or by_vmap(*given)
    )
    for most, parts in ((2, [2, 2, 2, 1]), (0, [1] * 7), (80, [7])):
        monkeypatch.setattr(per_sample, "HELD", most * sum(p.numel() for p in model.parameters()))
        held.clear()
        total = clipped_sum(model, images, labels, 0.1)
        assert held == parts
        for name in whole:
            np.testing.assert_allclose(total[name].numpy(), whole[name].numpy(), atol=1e-6)


@pytest.mark.parametrize("served", [True, False])
def test_a_callers_mixed_precision_does_not_reach_the_sums(served, monkeypatch):
    """bfloat16 has eight bits: norms that are off by half a percent let a sum move by more than was accounted."""
    model = classifiers.build("cnn", shape=(16, 16, 1), classes=10, seed=0)
    torch.manual_seed(7)
    images, labels = torch.rand(5, 1, 16, 16), torch.randint(10, (5,))
    monkeypatch.setattr(per_sample.layerwise, "serves", lambda model: served)
    plain = clipped_sum(model, images, labels, 0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(images).dtype == torch.bfloat16
        mixed = clipped_sum(model, images, labels, 0.1)
    assert all(torch.equal(plain[name], mixed[name]) for name in plain)


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize(("name", "count"), [("papernot", 78), ("fedavg_cnn", 12), ("abadi", 6)])
def test_equals_opacus_on_the_papers_networks(name, count):
    """It runs in float64, so that the formula is compared, and compares relative differences."""
    model = classifiers.build(name, shape=(28, 28, 1), classes=10, seed=0).double()
    torch.manual_seed(8)
    images, labels = torch.rand(count, 1, 28, 28, dtype=torch.float64), torch.randint(10, (count,))
    ours = clipped_sum(model, images, labels, 0.5)
    theirs = opacus_sum(model, images, labels, 0.5)
    for (key, total), other in zip(ours.items(), theirs):
        assert (total - other).norm() <= 1e-6 * other.norm(), key


def test_an_empty_lot_gives_zeros():
    model = classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)
    total = clipped_sum(model, torch.zeros(0, 1, 8, 8), torch.zeros(0, dtype=torch.long), 1.0)
    assert all(not tensor.any() for tensor in total.values())
    assert set(total) == {name for name, _ in model.named_parameters()}


@pytest.mark.parametrize("size", [1e20, 3e38, float("inf"), float("nan")])
def test_hostile_weights_cannot_make_a_record_show_as_nan(size):
    """A server may send any weights: whatever they are, one record moves the sum by at most the clipping norm."""
    model = classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(size)
    torch.manual_seed(3)
    images, labels = torch.rand(3, 1, 8, 8), torch.randint(10, (3,))
    images[0] = 0  # a blank record keeps gradients finite where the others overflow
    whole, part = (clipped_sum(model, images[:count], labels[:count], 1.0) for count in (3, 2))
    assert all(tensor.isfinite().all() for tensor in (*whole.values(), *part.values()))
    assert torch.sqrt(sum((whole[k] - part[k]).square().sum() for k in whole)).item() <= 1.0 + 1e-5


@pytest.mark.parametrize("served", [True, False])
def test_lots_in_one_call_are_each_the_sum_over_their_own_records(served, monkeypatch):
    """Small ones share a pass, large ones are cut, each is scaled by its own rule."""
    monkeypatch.setattr(per_sample.layerwise, "serves", lambda model: served)
    model = classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)
    torch.manual_seed(3)
    lots = [
        per_sample.Lot(
            torch.rand(count, 1, 8, 8),
            torch.randint(10, (count,)),
            per_sample.clipped(0.1 * (number + 1)),
        )
        for number, count in enumerate((5, 0, 30, 200, 40, 1, 79, 0))
    ]
    for lot, found in zip(lots, per_sample.scaled_sums(model, lots), strict=True):
        alone = per_sample.scaled_sum(model, lot)
        torch.testing.assert_close(found.norms, alone.norms, atol=1e-6, rtol=1e-5)
        for name, total in alone.total.items():
            torch.testing.assert_close(found.total[name], total, atol=1e-5, rtol=1e-4)
    assert per_sample.scaled_sums(model, []) == []


def test_a_record_without_a_finite_gradient_reaches_no_other_lot():
    model = classifiers.build("mlp", shape=(8, 8, 1), classes=10, seed=0)
    torch.manual_seed(4)
    images, labels = torch.rand(6, 1, 8, 8), torch.randint(10, (6,))
    images[1] = math.nan
    bad, good = (
        per_sample.Lot(images[at], labels[at], per_sample.clipped(0.5))
        for at in (slice(3), slice(3, 6))
    )
    found, alone = per_sample.scaled_sums(model, [bad, good]), per_sample.scaled_sum(model, good)
    for name, total in alone.total.items():
        torch.testing.assert_close(found[1].total[name], total)
        assert found[0].total[name].isfinite().all()


def test_a_pass_holds_no_more_than_is_kept_at_once_and_no_lot_in_two_orders():
    def lot(count):
        return per_sample.Lot(
            torch.zeros(count, 1), torch.zeros(count, dtype=torch.long), torch.ones_like
        )

    passes = list(per_sample._passes([lot(count) for count in (30, 30, 30, 0, 170, 10, 80)], 80))
    assert [[(part.lot, len(part.labels)) for part in one] for one in passes] == [
        [(0, 30), (1, 30)],
        [(2, 30)],
        [(4, 57)],
        [(4, 57)],
        [(4, 56), (5, 10)],
        [(6, 80)],
    ]
