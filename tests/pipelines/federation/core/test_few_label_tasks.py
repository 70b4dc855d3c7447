"""Tasks that look like a client with few labels: their sizes, class shares and draws."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pipelines.config.training import FewLabels
from pipelines.federation.core import few_label_tasks
from pipelines.federation.core.local_sgd import Local


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def local(labels: list[int]) -> Local:
    """Returns images whose only pixel is their number."""
    images = torch.arange(len(labels)).float().reshape(-1, 1, 1, 1)
    return Local(nn.Identity(), images, torch.tensor(labels), None, 0)


@given(st.integers(1, 50), st.integers(0, 100), st.integers(0, 2**31))
def test_a_support_set_has_a_size_between_the_two(least, more, seed):
    settings = FewLabels(least=least, most=least + more, concentration=0.5)
    size = few_label_tasks.support_size(settings, stream(seed))
    assert least <= size <= least + more


def test_small_support_sets_are_as_likely_as_large_ones_by_their_logarithm():
    settings = FewLabels(least=8, most=128, concentration=0.5)
    one = stream()
    sizes = [few_label_tasks.support_size(settings, one) for _ in range(4000)]
    assert abs(np.mean(np.array(sizes) <= 32) - 0.5) < 0.03


def test_class_shares_are_those_of_the_dirichlet_distribution():
    one = stream()
    shares = [few_label_tasks.class_shares(4, 0.5, one).numpy() for _ in range(4000)]
    assert np.allclose(np.sum(shares, axis=1), 1.0, atol=1e-4)
    # a share is Beta(0.5, 1.5): mean 1/4, variance 1/16
    assert np.allclose(np.mean(shares, axis=0), 0.25, atol=0.02)
    assert np.allclose(np.var(shares, axis=0), 1 / 16, atol=0.006)


def test_images_come_by_the_shares_of_their_classes_however_many_there_are():
    data = local([0] * 90 + [1] * 10)
    images, labels = few_label_tasks.by_shares(data, torch.tensor([0.2, 0.8]), 5000, stream())
    assert abs((labels == 1).float().mean().item() - 0.8) < 0.02
    assert torch.equal(labels, data.labels[images.flatten().long()])
    of_class = torch.bincount(images.flatten().long(), minlength=100)[90:].float()
    assert of_class.min() > 0.8 * of_class.mean(), "images of a class are as likely as each other"


def test_a_class_without_images_is_left_out():
    shares = torch.tensor([0.1, 0.8, 0.1])
    _, labels = few_label_tasks.by_shares(local([0, 0, 2]), shares, 1000, stream())
    assert set(labels.tolist()) == {0, 2}
