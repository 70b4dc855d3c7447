"""Tests the conversion between labelled images in numpy and torch."""

import numpy as np
import pytest
import torch

from models import classifiers
from pipelines.errors import UserError
from pipelines.synthesis.base import Space
from pipelines.training import tensors as module


def test_tensors_are_channels_first_in_zero_to_one(records):
    data = records(5, Space(4, 6, 3, 2))
    images, labels = module.tensors(data)
    assert (
        images.shape == (5, 3, 4, 6)
        and images.dtype == torch.float32
        and labels.dtype == torch.int64
    )
    np.testing.assert_allclose(images.permute(0, 2, 3, 1), data.images / 255, atol=1e-6)
    assert labels.tolist() == data.labels.tolist()


def test_a_state_goes_out_and_in_without_sharing_memory():
    one, two = (classifiers.build("mlp", shape=(4, 4, 1), classes=2, seed=seed) for seed in (0, 1))
    state = module.state_of(one)
    assert module.with_state(two, state) is two
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters()))
    for array in state.values():
        array[:] = 0
    assert any(parameter.any() for parameter in one.parameters())


def test_weights_of_another_network_are_one_sentence():
    one, two = (classifiers.build("mlp", shape=(side, 4, 1), classes=2, seed=0) for side in (4, 5))
    for state in ({}, module.state_of(two)):
        with pytest.raises(UserError, match="Weights do not fit their network") as error:
            module.with_state(one, state)
        assert "\n" not in str(error.value)


def test_logits_are_those_of_one_pass_whatever_the_parts():
    model = classifiers.build("mlp", shape=(4, 4, 1), classes=3, seed=0).train()
    images = torch.rand(2 * module.AT_ONCE + 7, 1, 4, 4)
    found = module.logits(model, images)
    assert torch.allclose(found, model(images), atol=1e-6) and found.shape == (len(images), 3)
    assert not found.requires_grad and not model.training


def test_devices_by_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert module.device("auto").type == module.device("cpu").type == "cpu"
    with pytest.raises(
        UserError, match=r"'device' parameter must be auto or cpu .* Got 'cuda' instead"
    ):
        module.device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (module.device("auto").type, module.device("cpu").type) == ("cuda", "cpu")
