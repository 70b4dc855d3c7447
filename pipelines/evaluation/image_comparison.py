"""Compares a synthetic set with real records: the network of features, subsamples, the floor.

Everything here is private: it stays with the client.
"""

import hashlib
from pickle import UnpicklingError

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from models.features import SmallGray
from pipelines.config.data import Encoder, Quality
from pipelines.config.values import mistake
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.evaluation.image_quality import LAYERS, fidelity
from pipelines.training import fixed_features
from pipelines.training.fixed_features import Fixed

# images compared on either side: precision and recall take all pairs
MOST = 2000
# images at once: Inception's maps of 299x299 are large
BATCH = 100


class OnEncoder(nn.Module):
    """Has the features of a frozen encoder, and a readout of class probabilities.

    Attributes:
        sha256: The hash of the encoder's weights.
    """

    def __init__(self, fixed: Fixed, readout: nn.Linear | None = None):
        super().__init__()
        self.encoder = fixed_features.module(fixed)
        self.sha256 = fixed.facts["weights_sha256"]
        self.readout = readout or nn.Linear(fixed.count, 2)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns features [B, f] and logits [B, K] of uint8 images [B, C, H, W]."""
        features = self.encoder(images.float() / 255)
        return features, self.readout(features)


def extractor(settings: Quality, real: Images, encoder: Encoder | None = None) -> nn.Module:
    """Returns the network of features that the settings name.

    It is `small_gray` or the profile's encoder, each with a readout fitted on the client's own
    records, or torch-fidelity's Inception.

    Args:
        settings: Which one it is.
        real: The client's own records.
        encoder: The profile's encoder, or None.

    Raises:
        UserError: Inception is asked for without the path of its weights (nothing is downloaded),
            with weights that cannot be read, or for images that are neither grey nor RGB. Or an
            encoder is asked for, and the profile names none.
    """
    channels = real.images.shape[-1]
    if settings.extractor == "encoder":
        if not encoder:
            rule = "small_gray where the profile names no encoder"
            raise mistake("quality.extractor", "encoder", rule)
        fixed = Fixed(real.images.shape[1:], encoder)
        return OnEncoder(fixed, _readout(OnEncoder(fixed), real))
    if settings.extractor == "inception":
        if channels not in (1, 3):
            raise mistake(
                "quality.extractor", "inception", f"small_gray for images of {channels} channels"
            )
        return _inception(settings)
    plain = SmallGray("small_gray", ["features"], channels=channels)
    return SmallGray("small_gray", list(LAYERS), channels=channels, readout=_readout(plain, real))


def digest(network: nn.Module) -> str:
    """Returns the sha256 of the weights behind the features.

    Scores under different weights do not compare.
    """
    if isinstance(network, OnEncoder):
        return network.sha256
    weights = getattr(network, "convolutions", network).state_dict()
    digest_of_weights = hashlib.sha256()
    for tensor in weights.values():
        digest_of_weights.update(tensor.numpy().tobytes())
    return digest_of_weights.hexdigest()


def uint8_tensor(data: Images) -> torch.Tensor:
    """Returns the images as uint8 [n, C, H, W]."""
    return torch.from_numpy(np.ascontiguousarray(data.images.transpose(0, 3, 1, 2)))


def features(network: nn.Module, data: Images) -> dict[str, torch.Tensor]:
    """Returns {"features": [n, f], "logits": [n, K]}, computed in batches.

    Each extractor has its own names for these two layers, so they are taken by position.
    """
    with torch.no_grad():
        batches = [network(batch) for batch in uint8_tensor(data).split(BATCH)]
    return {layer: torch.cat(parts) for layer, parts in zip(LAYERS, zip(*batches))}


def compare(
    network: nn.Module, fake: Images, train: Images, held_out: Images, settings: Quality, seed: int
) -> dict:
    """Scores the synthetic set, and as a floor held-out real records, against training records.

    At most `MOST` training records are compared with. The two sides that are held against them
    have as many images as the smaller one, for FID and recall depend on the number. Subsamples
    are random, for records may come sorted by class.

    Args:
        network: The network of features.
        fake: The synthetic set.
        train: The client's training records.
        held_out: The client's other real records, which give the floor.
        settings: Its `repeats` is the number of subsamples that a synthetic score averages.
        seed: Seed of all subsamples.

    Returns:
        NAME and NAME_floor of every metric of `image_quality.METRICS`, and "images_compared".
    """
    rng = np.random.default_rng(seed)
    real = features(network, _some(train, MOST, rng))
    held_out_features = features(network, held_out)
    fake_features = features(network, fake)
    count = min(len(held_out), len(fake), MOST)

    def against_real(side: dict[str, torch.Tensor]) -> dict[str, float]:
        rows = torch.from_numpy(rng.permutation(len(side["features"]))[:count])
        sample = {layer: values[rows] for layer, values in side.items()}
        return fidelity(sample, real, seed)

    runs = [against_real(fake_features) for _ in range(settings.repeats)]
    floor = against_real(held_out_features)
    results = {}
    for name in runs[0]:
        results[name] = float(np.mean([run[name] for run in runs]))
    for name, value in floor.items():
        results[f"{name}_floor"] = value
    return {**results, "images_compared": count}


def _some(data: Images, most: int, rng: np.random.Generator) -> Images:
    """Returns the set itself, or `most` of its images drawn at random."""
    return data if len(data) <= most else data[rng.permutation(len(data))[:most]]


def _readout(plain: nn.Module, real: Images) -> nn.Linear:
    """Returns logistic regression on the fixed features as a linear layer.

    Records of a single class give a constant.
    """
    x = features(plain, real)["features"].numpy()
    classes = np.unique(real.labels)
    layer = nn.Linear(x.shape[1], max(2, len(classes)))
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
        if len(classes) > 1:
            weight, bias = _regression(x, real.labels)
            layer.weight.copy_(torch.from_numpy(weight))
            layer.bias.copy_(torch.from_numpy(bias))
    return layer


def _regression(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the weights [K, f] and biases [K] of logistic regression on features [n, f]."""
    centre = x.mean(0)
    spread = x.std(0) + 1e-6
    fitted = LogisticRegression(max_iter=500).fit((x - centre) / spread, labels)
    weight = fitted.coef_ / spread
    bias = fitted.intercept_ - weight @ centre
    if len(weight) == 1:
        # scikit-learn keeps one row for two classes
        weight = np.concatenate([-weight, weight]) / 2
        bias = np.concatenate([-bias, bias]) / 2
    return weight, bias


def _inception(settings: Quality) -> nn.Module:
    """Returns torch-fidelity's Inception over grey or RGB images, from weights on disk."""
    from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3

    if not settings.inception_weights:
        raise UserError(
            "The 'inception_weights' parameter of quality must be the path of torch-fidelity's "
            "Inception weights when 'extractor' is inception; nothing is downloaded. "
            "Got None instead. (settings/generators.yaml)"
        )

    class Inception(FeatureExtractorInceptionV3):
        def forward(self, images):
            return super().forward(images.expand(-1, 3, -1, -1))

    layers = ["2048", "logits_unbiased"]
    try:
        return Inception(
            "inception-v3-compat", layers, feature_extractor_weights_path=settings.inception_weights
        )
    except (OSError, RuntimeError, ValueError, EOFError, UnpicklingError) as error:
        said = " ".join(str(error).split())
        raise UserError(
            f"Could not read the Inception weights {settings.inception_weights}: {said}"
        ) from None
