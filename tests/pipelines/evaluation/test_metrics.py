import numpy as np
import pytest
import torch
from torch import nn

from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.metrics import over_clients, scores_of
from pipelines.evaluation.scoring import predictions, scores


class Fixed(nn.Module):
    """Predicts what the images' first pixel says."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, images):
        return nn.functional.one_hot((images[:, 0, 0, 0] * 255).round().long(), 10).float()


def data(truth, predicted):
    pixels = np.zeros((len(truth), 2, 2, 1), np.uint8)
    pixels[:, 0, 0, 0] = predicted
    return Images(pixels, np.array(truth), np.arange(len(truth)))


def test_scores_by_hand():
    # class 0: precision 1/2, recall 1/2; class 1: precision 1, recall 2/2
    result = scores(Fixed(), data([0, 0, 1, 1], [0, 5, 1, 1]))
    assert result["accuracy"] == 0.75
    assert result["macro_f1"] == pytest.approx((2 / 3 + 1) / 2)


def test_the_label_list_is_the_sets_own_and_no_prediction_changes_it():
    assert scores(Fixed(), data([3, 4], [3, 4]))["macro_f1"] == 1.0
    # wrong predictions outside the list lower recall, not the number of classes averaged
    assert scores(Fixed(), data([3, 3, 4, 4], [3, 3, 7, 8]))["macro_f1"] == pytest.approx(0.5)


def test_a_stray_prediction_costs_recall_and_no_class_more():
    """scikit-learn's own list, the union of true and predicted labels, would make it (2/3 + 1 + 0) / 3."""
    labels = np.array([3, 3, 4, 4])
    assert scores_of(np.array([3, 7, 4, 4]), labels)["macro_f1"] == pytest.approx((2 / 3 + 1) / 2)


def test_scores_are_those_of_the_predictions():
    images = data([0, 0, 1, 1], [0, 5, 1, 1])
    assert list(predictions(Fixed(), images)) == [0, 5, 1, 1]
    assert scores_of(np.array([0, 5, 1, 1]), images.labels) == scores(Fixed(), images)


def test_the_whole_set_counts_not_the_last_batch():
    """PPPFL's released code scores the last mini-batch only: here the errors all come first."""
    truth = [0] * 1500
    predicted = [1] * 1200 + [0] * 300
    assert scores(Fixed(), data(truth, predicted))["accuracy"] == pytest.approx(0.2)


def test_over_clients_counts_each_client_alike():
    values = {"a": {"accuracy": 1.0, "macro_f1": 0.8}, "b": {"accuracy": 0.5, "macro_f1": 0.4}}
    assert over_clients(values) == {
        "mean_accuracy": 0.75,
        "worst_accuracy": 0.5,
        "spread_accuracy": 0.25,
        "mean_macro_f1": pytest.approx(0.6),
    }
