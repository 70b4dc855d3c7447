"""The inception score of a set of images, under any classifier (Salimans et al. 2016).

exp of the mean over images of KL(p(y|x) || p(y)): 1 where the classifier tells nothing apart, the number of classes
where each image is told for certain and the classes are equally frequent. A set with few classes cannot score high.
Scores under different classifiers do not compare, and none compares with Inception's.
"""

import torch
from torch import nn
from torch_fidelity.metric_isc import KEY_METRIC_ISC_MEAN, isc_features_to_metric

from pipelines.datasets.labelled_images import Images
from pipelines.training.tensors import logits, tensors


def score(model: nn.Module, data: Images) -> float:
    """The inception score of `data` under a classifier of its images."""
    images, _ = tensors(data, next(model.parameters()).device)
    return of_logits(logits(model, images).cpu())


def of_logits(logits: torch.Tensor) -> float:
    """torch-fidelity's, over the whole set at once. logits: [n, K]."""
    return float(isc_features_to_metric(logits, splits=1, shuffle=False)[KEY_METRIC_ISC_MEAN])
