"""A feature extractor for small images that needs no download: fixed random convolutions and a linear readout.

Random filters are drawn from a constant seed, so that generators compare within one client, and need no data; that
such features order noise levels is tested. Scores of clients with other records and hold-outs do not compare. The
readout that gives the inception score its class probabilities is fitted by the caller.
"""

import torch
from torch import nn
from torch_fidelity import FeatureExtractorBase, register_feature_extractor

SEED = 20_231
FEATURES = 32


class SmallGray(FeatureExtractorBase):
    """torch-fidelity's interface over uint8 images [B, C, H, W] of any size from 8x8 up."""

    LAYERS = ("features", "logits")

    def __init__(
        self,
        name,
        features_list,
        feature_extractor_weights_path=None,
        *,
        channels=1,
        readout=None,
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
    def get_provided_features_list():
        return SmallGray.LAYERS

    @staticmethod
    def get_default_feature_layer_for_metric(metric):
        return "logits" if metric == "isc" else "features"

    @staticmethod
    def can_be_compiled():
        return False

    @staticmethod
    def get_dummy_input_for_compile():
        return torch.zeros(4, 1, 8, 8, dtype=torch.uint8)

    def forward(self, images):
        features = (
            self.convolutions(images.float() / 127.5 - 1) * 10
        )  # the scale only keeps FID off 1e-4
        return tuple(
            {"features": features, "logits": self.readout(features)}[layer]
            for layer in self.features_list
        )


register_feature_extractor("small_gray", SmallGray)
