"""Accuracy and macro-F1 on whole test sets, and the summary of a method over clients."""

import numpy as np
import torch.nn.functional as F
from sklearn.metrics import f1_score
from torch import nn

from pipelines.datasets.labelled_images import Images
from pipelines.training.tensors import logits, tensors


def predictions(model: nn.Module, data: Images) -> np.ndarray:
    """int64 [n]: the most likely class of every image."""
    images, _ = tensors(data, next(model.parameters()).device)
    return logits(model, images).argmax(1).cpu().numpy()


def scores(model: nn.Module, data: Images) -> dict[str, float]:
    """{"accuracy", "macro_f1"} over the whole set."""
    return scores_of(predictions(model, data), data.labels)


def loss_and_accuracy(model: nn.Module, data: Images) -> tuple[float, float]:
    """(mean cross-entropy, accuracy) over the whole set."""
    images, labels = tensors(data, next(model.parameters()).device)
    found = logits(model, images)
    return F.cross_entropy(found, labels).item(), (found.argmax(1) == labels).float().mean().item()


def scores_of(predicted: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """The same from the predictions themselves; both int64 [n].

    macro_f1 averages over the classes that the set itself holds: a list fixed by the true labels, so that a client
    with six classes can reach 1 and all methods are averaged over the same classes. scikit-learn's default takes the
    union of true and predicted labels instead: one stray prediction of an absent class then adds an F1 of 0 and a
    class to divide by, and two methods on one set no longer mean the same average.
    """
    macro = f1_score(labels, predicted, labels=np.unique(labels), average="macro", zero_division=0)
    return {"accuracy": float(np.mean(predicted == labels)), "macro_f1": float(macro)}


def over_clients(values: dict[str, dict[str, float]]) -> dict[str, float]:
    """Mean, worst and spread (standard deviation) over clients, each client counting alike."""
    accuracy = np.array([entry["accuracy"] for entry in values.values()])
    macro = np.array([entry["macro_f1"] for entry in values.values()])
    return {
        "mean_accuracy": float(accuracy.mean()),
        "worst_accuracy": float(accuracy.min()),
        "spread_accuracy": float(accuracy.std()),
        "mean_macro_f1": float(macro.mean()),
    }
