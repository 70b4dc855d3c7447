"""How good a synthetic set is, by torch-fidelity's metrics and by training on it. Scores against real records are
private: they stay with the client."""

import hashlib
from pickle import UnpicklingError

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
from torch_fidelity.metric_isc import isc_features_to_metric
from torch_fidelity.metric_kid import kid_features_to_metric
from torch_fidelity.metric_prc import prc_features_to_metric

from models.features import SmallGray
from pipelines.config.data import Quality
from pipelines.config.values import mistake
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError

LAYERS = ("features", "logits")
NEIGHBOURS = 3
MOST = 2000  # images compared on either side: precision and recall take all pairs
BATCH = 100  # images at once: Inception's maps of 299x299 are large


def extractor(settings: Quality, real: Images) -> nn.Module:
    """`small_gray` with a readout fitted on the client's own records, or torch-fidelity's Inception.

    Raises:
        UserError: Inception is asked for without the path of its weights (nothing is downloaded), with weights that
            cannot be read, or for images that are neither grey nor RGB.
    """
    channels = real.images.shape[-1]
    if settings.extractor == "inception":
        if channels not in (1, 3):
            raise mistake(
                "quality.extractor", "inception", f"small_gray for images of {channels} channels"
            )
        return _inception(settings)
    plain = SmallGray("small_gray", ["features"], channels=channels)
    return SmallGray("small_gray", list(LAYERS), channels=channels, readout=_readout(plain, real))


def digest(network: nn.Module) -> str:
    """sha256 of the weights behind the features: never compare scores across different ones."""
    weights = getattr(network, "convolutions", network).state_dict()
    return hashlib.sha256(
        b"".join(tensor.numpy().tobytes() for tensor in weights.values())
    ).hexdigest()


def uint8_tensor(data: Images) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(data.images.transpose(0, 3, 1, 2)))


def features(network: nn.Module, data: Images) -> dict[str, torch.Tensor]:
    """{"features": [n, f], "logits": [n, K]}, in batches; each extractor has names of its own for the two."""
    with torch.no_grad():
        parts = [network(batch) for batch in uint8_tensor(data).split(BATCH)]
    return {layer: torch.cat(pieces) for layer, pieces in zip(LAYERS, zip(*parts))}


def fidelity(fake: dict, real: dict, settings: Quality, seed: int) -> dict[str, float]:
    """FID, KID, inception score, precision and recall of `fake` against `real`, from their features.

    The same numbers as torch_fidelity.calculate_metrics, which a test shows, without its loaders and caches.
    """
    fake_x, real_x = fake[LAYERS[0]], real[LAYERS[0]]
    statistics = [fid_features_to_statistics(x) for x in (fake_x, real_x)]
    subset = max(2, min(1000, len(fake_x) // 2, len(real_x) // 2))
    common = {"verbose": False}
    kid = kid_features_to_metric(
        fake_x, real_x, kid_subset_size=subset, kid_subsets=50, rng_seed=seed, **common
    )
    isc = isc_features_to_metric(fake[LAYERS[1]], splits=1, rng_seed=seed)
    prc = prc_features_to_metric(fake_x, real_x, prc_neighborhood=NEIGHBOURS, **common)
    return {
        "fid": float(
            fid_statistics_to_metric(*statistics, verbose=False)["frechet_inception_distance"]
        ),
        "kid": float(kid["kernel_inception_distance_mean"]),
        "inception_score": float(isc["inception_score_mean"]),
        "precision": float(prc["precision"]),
        "recall": float(prc["recall"]),
    }


def compare(
    network: nn.Module, fake: Images, train: Images, held_out: Images, settings: Quality, seed: int
) -> dict:
    """Scores of the synthetic set against the training records, and the floor: held-out real records against the same.

    At most `MOST` training records are compared with. The two sides that are held against them have as many images as
    the smaller one, for FID and recall depend on the number; the synthetic side is the mean over `repeats` subsamples.
    Subsamples are random, for records may come sorted by class.
    """
    rng = np.random.default_rng(seed)
    real, held, made = (
        features(network, data) for data in (_some(train, MOST, rng), held_out, fake)
    )
    count = min(len(held_out), len(fake), MOST)

    def against_real(side: dict) -> dict[str, float]:
        rows = torch.from_numpy(rng.permutation(len(side[LAYERS[0]]))[:count])
        return fidelity(
            {layer: values[rows] for layer, values in side.items()}, real, settings, seed
        )

    runs = [against_real(made) for _ in range(settings.repeats)]
    scores = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
    floor = against_real(held)
    return {
        **scores,
        **{f"{name}_floor": value for name, value in floor.items()},
        "images_compared": count,
    }


def _some(data: Images, most: int, rng: np.random.Generator) -> Images:
    return data if len(data) <= most else data[rng.permutation(len(data))[:most]]


def complaints(scores: dict, settings: Quality) -> list[str]:
    """A sentence for each threshold that the set misses."""
    limits = {"tstr_accuracy": settings.min_tstr_accuracy, "recall": settings.min_recall}
    return [
        f"{name} is {scores[name]:.3f}, below {limit:g}"
        for name, limit in limits.items()
        if not scores[name] >= limit
    ]


def _readout(plain: nn.Module, real: Images) -> nn.Linear:
    """Logistic regression on the fixed features, as a linear layer; a single class gives a constant."""
    x = features(plain, real)["features"].numpy()
    classes = np.unique(real.labels)
    layer = nn.Linear(x.shape[1], max(2, len(classes)))
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
        if len(classes) > 1:
            centre, spread = x.mean(0), x.std(0) + 1e-6
            fitted = LogisticRegression(max_iter=500).fit((x - centre) / spread, real.labels)
            weight, bias = (
                fitted.coef_ / spread,
                fitted.intercept_ - (fitted.coef_ / spread) @ centre,
            )
            if len(classes) == 2:  # scikit-learn keeps one row for two classes
                weight, bias = (
                    np.concatenate([-weight, weight]) / 2,
                    np.concatenate([-bias, bias]) / 2,
                )
            layer.weight.copy_(torch.from_numpy(weight))
            layer.bias.copy_(torch.from_numpy(bias))
    return layer


def _inception(settings: Quality) -> nn.Module:
    from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3

    if not settings.inception_weights:
        raise UserError(
            "The 'inception_weights' parameter of quality must be the path of torch-fidelity's Inception weights when "
            "'extractor' is inception; nothing is downloaded. Got None instead. (params.yaml)"
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
