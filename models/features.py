"""Extracts features of small images without any download: random convolutions, a linear readout.

Random filters are drawn from a constant seed, so that generators compare within one client, and
need no data; that such features order noise levels is tested. Scores of clients with other records
and hold-outs do not compare. The readout that gives the inception score its class probabilities is
fitted by the caller.
"""

import torch
from torch import nn
from torch_fidelity import FeatureExtractorBase, register_feature_extractor

SEED = 20_231
FEATURES = 32


class SmallGray(FeatureExtractorBase):
    """Has torch-fidelity's interface over uint8 images [B, C, H, W] of any size from 8x8 up.

    Args:
        name: The name under which it is registered.
        features_list: Which of LAYERS `forward` returns, in this order.
        feature_extractor_weights_path: Not used: the weights follow from SEED.
        channels: The channels C of the images.
        readout: The linear layer from features to logits; by default a random one of two classes.
    """

    LAYERS = ("features", "logits")

    def __init__(
        self,
        name: str,
        features_list: list[str],
        feature_extractor_weights_path: str | None = None,
        *,
        channels: int = 1,
        readout: nn.Linear | None = None,
        **kwargs,
    ):
        super().__init__(name, features_list)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            self.readout = readout or nn.Linear(FEATURES, 2)
            torch.manual_seed(SEED)
            self.convolutions = nn.Sequential(
                nn.Conv2d(channels, 16, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(16, FEATURES // 4, 3, padding=1),
                nn.ReLU(),
                nn.AdaptiveAvgPool2d(2),
                nn.Flatten(),
            )
        self.eval().requires_grad_(False)

    @staticmethod
    def get_provided_features_list() -> tuple[str, ...]:
        """Returns the names of the layers, as torch-fidelity wants them."""
        return SmallGray.LAYERS

    @staticmethod
    def get_default_feature_layer_for_metric(metric: str) -> str:
        """Returns the layer of a metric: logits for the inception score, else features."""
        return "logits" if metric == "isc" else "features"

    @staticmethod
    def can_be_compiled() -> bool:
        """Returns False."""
        return False

    @staticmethod
    def get_dummy_input_for_compile() -> torch.Tensor:
        """Returns a batch of black images."""
        return torch.zeros(4, 1, 8, 8, dtype=torch.uint8)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Returns the layers of uint8 images [B, C, H, W]: features [B, 32], logits [B, K]."""
        # the scale only keeps FID off 1e-4
        features = self.convolutions(images.float() / 127.5 - 1) * 10
        layers = {"features": features, "logits": self.readout(features)}
        return tuple(layers[layer] for layer in self.features_list)


register_feature_extractor("small_gray", SmallGray)
