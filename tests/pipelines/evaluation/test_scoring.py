"""Tests the inception score against its closed form."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.image_quality import inception_score_of
from pipelines.evaluation.scoring import inception_score


@pytest.mark.parametrize("classes", [2, 5, 10])
def test_certain_and_even_gives_the_number_of_classes(classes):
    assert inception_score_of(60.0 * torch.eye(classes).repeat(7, 1)) == pytest.approx(classes)


def test_telling_nothing_apart_gives_one():
    assert inception_score_of(torch.zeros(9, 4)) == pytest.approx(1)
    assert inception_score_of(torch.eye(4)[[2] * 9] * 60) == pytest.approx(1)


@pytest.mark.parametrize("p", [0.6, 0.9])
def test_two_classes_told_apart_in_part(p):
    """Half the images have (p, 1 - p), half the other way round. The score is exp(log 2 - H(p))."""
    logits = torch.tensor([[p, 1 - p], [1 - p, p]]).log().repeat(3, 1)
    assert inception_score_of(logits) == pytest.approx(2 * p**p * (1 - p) ** (1 - p))


def test_the_score_of_images_is_that_of_their_logits_in_any_order():
    rng = np.random.default_rng(0)
    data = Images(
        rng.integers(0, 256, (2500, 2, 2, 1)).astype(np.uint8),
        np.zeros(2500, np.int64),
        np.arange(2500),
    )
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    logits = model(torch.from_numpy(data.pixels).permute(0, 3, 1, 2)).detach()
    found = inception_score(model, data)
    assert found == pytest.approx(inception_score_of(logits), rel=1e-6) and 1 < found < 3
    assert inception_score(model, data[rng.permutation(2500)]) == pytest.approx(found, rel=1e-6)
    assert math.isfinite(found)
