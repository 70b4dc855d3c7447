"""Tests what the server computes from its public images in parts against the whole at once."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from models import classifiers
from pipelines.datasets.labelled_images import Images
from pipelines.federation.dp import public
from pipelines.training.tensors import state_of, tensors


@pytest.mark.parametrize("at_once", [3, 250])
def test_losses_and_slopes_in_parts_are_those_of_all_images(monkeypatch, at_once):
    monkeypatch.setattr(public, "AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    images = Images(rng.random((8, 6, 6, 1), np.float32), rng.integers(0, 10, 8), np.arange(8))
    models = [classifiers.build("mlp", shape=(6, 6, 1), classes=10, seed=seed) for seed in (1, 2)]
    states = [state_of(model) for model in models]
    spare = classifiers.build("mlp", shape=(6, 6, 1), classes=10, seed=0)
    points, losses, slopes = public.Public(spare, images).probe(states)
    for number, model in enumerate(models):
        loss = F.cross_entropy(model(tensors(images)[0]), tensors(images)[1])
        slope = torch.cat(
            [part.flatten() for part in torch.autograd.grad(loss, list(model.parameters()))]
        )
        assert losses[number] == pytest.approx(loss.item(), rel=1e-6)
        np.testing.assert_allclose(slopes[number], slope.numpy(), atol=1e-7)
        np.testing.assert_array_equal(
            points[number], torch.cat([p.flatten() for p in model.parameters()]).detach()
        )


@pytest.mark.parametrize("asked, count", [(3, 3), (8, 8), (100, 8), (None, 8)])
def test_a_model_is_scored_on_as_many_as_asked_evenly_from_all(asked, count):
    rng = np.random.default_rng(0)
    images = Images(rng.random((8, 6, 6, 1), np.float32), np.arange(8), np.arange(8))
    model = classifiers.build("mlp", shape=(6, 6, 1), classes=10, seed=1)
    rows = {3: [0, 2, 5], 8: list(range(8))}[count]
    loss = F.cross_entropy(model(tensors(images)[0][rows]), tensors(images)[1][rows]).item()
    spare = classifiers.build("mlp", shape=(6, 6, 1), classes=10, seed=0)
    assert public.Public(spare, images).validate(state_of(model), asked)[0] == pytest.approx(
        loss, rel=1e-6
    )
