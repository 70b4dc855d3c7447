"""Scores a model on whole sets of images: predictions, every metric, loss, inception score."""

import numpy as np
import torch.nn.functional as F
from torch import nn

from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.image_quality import inception_score_of
from pipelines.evaluation.metrics import scores_of
from pipelines.training.tensors import logits, tensors


def predictions(model: nn.Module, data: Images) -> np.ndarray:
    """Returns the most likely class of every image, int64 [n]."""
    images, _ = tensors(data, next(model.parameters()).device)
    return logits(model, images).argmax(1).cpu().numpy()


def scores(model: nn.Module, data: Images) -> dict[str, float]:
    """Returns {name: value} of every metric of `metrics.METRICS` over the whole set."""
    return scores_of(predictions(model, data), data.labels)


def loss_and_accuracy(model: nn.Module, data: Images) -> tuple[float, float]:
    """Returns the mean cross-entropy and the accuracy over the whole set."""
    images, labels = tensors(data, next(model.parameters()).device)
    outputs = logits(model, images)
    loss = F.cross_entropy(outputs, labels).item()
    accuracy = (outputs.argmax(1) == labels).float().mean().item()
    return loss, accuracy


def inception_score(model: nn.Module, data: Images) -> float:
    """Returns the inception score of a set of images under a classifier of such images.

    It is exp of the mean over images of KL(p(y|x) || p(y)) (Salimans et al. 2016). It is 1 if the
    classifier tells nothing apart. It is the number of classes if every image is classified with
    certainty and the classes are equally frequent. A set with few classes cannot score high.
    Scores under different classifiers do not compare, and none compares with Inception's.
    """
    images, _ = tensors(data, next(model.parameters()).device)
    return inception_score_of(logits(model, images).cpu())
