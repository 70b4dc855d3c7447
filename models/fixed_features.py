"""Defines networks on fixed features: only one linear layer is trained, and only it has parameters.

>>> model = head(FixedFeatures(count=5), classes=3)
>>> list(model.state_dict())
['2.weight']
"""

import copy

from torch import nn

# the constant input whose weights are the biases: features have a mean norm of 1
BIAS = 0.3


class FixedFeatures(nn.Module):
    """Maps float images [B, C, H, W] in [0, 1] to features [B, count] that are never trained.

    The features of an image are a function of that image and of public numbers. A subclass has a
    `forward`, no parameters, and nothing in its state.

    Args:
        count: The number of features.
    """

    # of layerwise gradients (pipelines/privacy/layerwise.py): no weights, no look at other records
    treats_records_alone = True

    def __init__(self, count: int):
        super().__init__()
        self.count = count

    def train(self, mode: bool = True) -> "FixedFeatures":
        """Stays in evaluation mode, for averages over a batch would tie its images together."""
        return super().train(False)

    def sharing(self) -> "FixedFeatures":
        """Returns a module of its own with the same tensors, which are not copied."""
        tensors = {id(tensor): tensor for tensor in self.buffers()}
        return copy.deepcopy(self, tensors)


def head(features: FixedFeatures, classes: int) -> nn.Sequential:
    """Returns the network: the features, a constant input, and a linear layer of zeros.

    Training is convex, so that the layer begins at 0, and no seed is needed.

    Args:
        features: The fixed features, whose tensors the network shares.
        classes: The number of classes.
    """
    linear = nn.Linear(features.count + 1, classes, bias=False)
    nn.init.zeros_(linear.weight)
    return nn.Sequential(features.sharing(), nn.ConstantPad1d((0, 1), BIAS), linear)


def without_parameters(network: nn.Module) -> nn.Module:
    """Turns the parameters of a network into constants that are no part of its state, in place.

    Args:
        network: The network, which is also put into evaluation mode.

    Returns:
        The same network.

    >>> frozen = without_parameters(nn.Linear(2, 3))
    >>> len(frozen.state_dict()), list(frozen.parameters()), frozen.weight.shape
    (0, [], torch.Size([3, 2]))
    """
    for module in network.modules():
        constants = {**dict(module.named_parameters(recurse=False))}
        constants.update(module.named_buffers(recurse=False))
        for name, tensor in constants.items():
            delattr(module, name)
            module.register_buffer(name, tensor.detach(), persistent=False)
        if isinstance(module, nn.BatchNorm2d):
            # or it asks every state that is loaded for a count of batches, which none has
            module.track_running_stats = False
    return network.eval()
