"""The table of image metrics: how close a synthetic set is to real records, from their features.

Quality files, summary, report and the experiments' tables iterate METRICS. A new metric is one
entry here and its test. Scores against real records are private: they stay with the client.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pipelines.config.data import Quality

if TYPE_CHECKING:
    # a report reads the table and needs no torch
    import torch

LAYERS = ("features", "logits")
NEIGHBOURS = 3
SUBSETS = 50
LARGEST_SUBSET = 1000


class FeaturePair:
    """Holds the features of a synthetic set and of the real records it is held against."""

    def __init__(
        self, fake: dict[str, "torch.Tensor"], real: dict[str, "torch.Tensor"], seed: int
    ) -> None:
        """Stores the features.

        Args:
            fake: "features" [n, f] and "logits" [n, K] of the synthetic images.
            real: The same of the real images.
            seed: Seed of the subsets that a metric draws.
        """
        self.fake = fake["features"]
        self.real = real["features"]
        self.fake_logits = fake["logits"]
        self.seed = seed

    @cached_property
    def precision_and_recall(self) -> dict[str, float]:
        """Returns both at once, for they share the distances between all pairs of images."""
        from torch_fidelity.metric_prc import prc_features_to_metric

        return prc_features_to_metric(
            self.fake, self.real, prc_neighborhood=NEIGHBOURS, verbose=False
        )


class ImageMetric(NamedTuple):
    """Describes a figure of a synthetic set beside real records.

    Attributes:
        name: Key in quality.json. `NAME_floor` is the same of held-out real images.
        function: Takes a FeaturePair and returns the value.
        heading: Heading of its columns.
        form: Format specification of a value that is shown.
        on_pages: True if the report and the experiments show the value and its floor.
    """

    name: str
    function: Callable[[FeaturePair], float]
    heading: str
    form: str = ".3g"
    on_pages: bool = True


def frechet_distance(pair: FeaturePair) -> float:
    """Returns the Fréchet distance between the Gaussians of the two sets of features (FID)."""
    from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric

    fake = fid_features_to_statistics(pair.fake)
    real = fid_features_to_statistics(pair.real)
    return fid_statistics_to_metric(fake, real, verbose=False)["frechet_inception_distance"]


def kernel_distance(pair: FeaturePair) -> float:
    """Returns the mean over random subsets of the kernel distance between the two sets (KID)."""
    from torch_fidelity.metric_kid import kid_features_to_metric

    half = min(len(pair.fake), len(pair.real)) // 2
    distances = kid_features_to_metric(
        pair.fake,
        pair.real,
        kid_subset_size=max(2, min(LARGEST_SUBSET, half)),
        kid_subsets=SUBSETS,
        rng_seed=pair.seed,
        verbose=False,
    )
    return distances["kernel_inception_distance_mean"]


def inception_score(pair: FeaturePair) -> float:
    """Returns the inception score of the synthetic images under the extractor's readout."""
    from torch_fidelity.metric_isc import isc_features_to_metric

    scores = isc_features_to_metric(pair.fake_logits, splits=1, rng_seed=pair.seed)
    return scores["inception_score_mean"]


def precision(pair: FeaturePair) -> float:
    """Returns the share of synthetic images that lie among the real ones."""
    return pair.precision_and_recall["precision"]


def recall(pair: FeaturePair) -> float:
    """Returns the share of real images that lie among the synthetic ones."""
    return pair.precision_and_recall["recall"]


METRICS = [
    ImageMetric("fid", frechet_distance, "FID"),
    ImageMetric("kid", kernel_distance, "KID", on_pages=False),
    ImageMetric("inception_score", inception_score, "inception score", on_pages=False),
    ImageMetric("precision", precision, "precision", on_pages=False),
    ImageMetric("recall", recall, "recall", on_pages=False),
]


def on_pages() -> list[ImageMetric]:
    """Returns the metrics that the report and the experiments show."""
    return [metric for metric in METRICS if metric.on_pages]


def shown_fields() -> list[str]:
    """Returns the fields of quality.json that pages show: each shown metric and its floor."""
    fields = []
    for metric in on_pages():
        fields += [metric.name, f"{metric.name}_floor"]
    return fields


def fidelity(
    fake: dict[str, "torch.Tensor"], real: dict[str, "torch.Tensor"], seed: int
) -> dict[str, float]:
    """Returns {name: value} of every metric of METRICS.

    A test shows that they are the numbers of torch_fidelity.calculate_metrics, without its loaders
    and caches.

    Args:
        fake: "features" [n, f] and "logits" [n, K] of the synthetic images.
        real: The same of the real images.
        seed: Seed of the subsets that a metric draws.
    """
    pair = FeaturePair(fake, real, seed)
    return {metric.name: float(metric.function(pair)) for metric in METRICS}


def inception_score_of(logits: "torch.Tensor") -> float:
    """Returns torch-fidelity's inception score from logits [n, K], over the whole set at once."""
    from torch_fidelity.metric_isc import isc_features_to_metric

    scores = isc_features_to_metric(logits, splits=1, shuffle=False)
    return float(scores["inception_score_mean"])


def complaints(scores: dict, settings: Quality) -> list[str]:
    """Returns a sentence for each threshold that a synthetic set misses.

    >>> settings = Quality.model_construct(min_tstr_accuracy=0.5, min_recall=0.1)
    >>> complaints({"tstr_accuracy": 0.4, "recall": 0.3}, settings)
    ['tstr_accuracy is 0.400, below 0.5']
    """
    limits = {"tstr_accuracy": settings.min_tstr_accuracy, "recall": settings.min_recall}
    sentences = []
    for name, limit in limits.items():
        # nan is below any limit
        if not scores[name] >= limit:
            sentences.append(f"{name} is {scores[name]:.3f}, below {limit:g}")
    return sentences
