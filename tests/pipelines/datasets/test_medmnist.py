"""Tests the profiles of PneumoniaMNIST and BreastMNIST on MedMNIST's files, where they are at hand."""

import numpy as np
import pytest
from project import ROOT

from pipelines import config
from pipelines.datasets import sources

SHARED = ROOT.parent / "shared" / "datasets" / "medmnist"
# {data set: (file, counts by class of the records, and of the official test part)}
FILES = {
    "pneumonia": ("pneumoniamnist_reordered.npz", [1349, 3883], [234, 390]),
    "breast": ("breastmnist.npz", [168, 456], [42, 114]),
}


@pytest.mark.parametrize("dataset", FILES)
def test_the_official_parts_are_the_records_and_the_test_set(dataset, tmp_path):
    name, counts, test_counts = FILES[dataset]
    if not (SHARED / name).exists():
        pytest.skip("MedMNIST's files are not beside the project")
    (tmp_path / f"{dataset}.npz").symlink_to(SHARED / name)
    profile = config.load(ROOT / "params.yaml").profiles[dataset]
    records, test = sources.read(
        dataset, name=profile.source, classes=profile.classes, shape=profile.shape, root=tmp_path
    )
    assert np.bincount(records.labels).tolist() == counts
    assert np.bincount(test.labels).tolist() == test_counts
    with np.load(SHARED / name) as file:
        train = len(file["train_images"])
        np.testing.assert_array_equal(records.images[:train, :, :, 0], file["train_images"])
        np.testing.assert_array_equal(records.images[train:, :, :, 0], file["val_images"])
        np.testing.assert_array_equal(test.images[..., 0], file["test_images"])
        assert test.labels.tolist() == file["test_labels"].ravel().tolist()


@pytest.mark.parametrize("dataset", FILES)
def test_no_image_of_a_hospital_is_declared_public(dataset):
    params = config.load(ROOT / "params.yaml")
    assert params.public_fraction(dataset) == 0
    assert not params.profiles[dataset].is_public
    assert params.left_out(dataset, "adap") and not params.left_out(dataset, "dpsgd")
    assert len(params.profiles[dataset].class_names) == 2
