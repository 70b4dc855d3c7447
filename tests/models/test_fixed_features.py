"""Tests that fixed features stay fixed: no state, no parameters, no averages over a batch."""

import torch
from torch import nn

from models.fixed_features import FixedFeatures, head, without_parameters


class Averaged(FixedFeatures):
    """Has a batch norm, which would look at other images if it were ever trained."""

    def __init__(self):
        super().__init__(count=4)
        self.network = without_parameters(nn.Sequential(nn.BatchNorm2d(1), nn.Flatten()))

    def forward(self, images):
        return self.network(images)


def test_training_the_network_leaves_the_features_in_evaluation_mode():
    model = head(Averaged(), classes=2).train()
    images = torch.rand(5, 1, 2, 2)
    assert model.training and not any(module.training for module in model[0].modules())
    torch.testing.assert_close(model[0](images)[1:2], model[0](images[1:2]))


def test_a_control_with_a_batch_norm_in_training_sees_the_others():
    norm = nn.BatchNorm2d(1)
    images = torch.rand(5, 1, 2, 2)
    assert not torch.allclose(norm(images)[1:2], norm(images[1:2]))


def test_nothing_of_the_features_is_a_parameter_or_in_the_state():
    model = head(Averaged(), classes=2)
    assert list(model.state_dict()) == ["2.weight"]
    assert [name for name, _ in model.named_parameters()] == ["2.weight"]


def test_a_frozen_network_computes_what_it_did():
    network = nn.Sequential(nn.Conv2d(1, 3, 2), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3, 2))
    network[1].running_mean.normal_()
    images = torch.rand(4, 1, 2, 2)
    expected = network.eval()(images).detach()
    frozen = without_parameters(network)
    torch.testing.assert_close(frozen(images), expected, atol=0, rtol=0)
    assert not frozen.state_dict() and not list(frozen.parameters())
    assert not frozen(images).requires_grad
