"""Tests the batched path of torch-fidelity against its own calculate_metrics, and what the scores
must order.
"""

import pickle

import numpy as np
import pytest
import torch
import torch_fidelity
from sklearn.datasets import load_digits
from torch.utils.data import Dataset

from pipelines.config.data import Encoder, Quality
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.evaluation import image_comparison, image_quality
from pipelines.training.fixed_features import Fixed

SETTINGS = Quality(
    extractor="small_gray",
    inception_weights=None,
    repeats=2,
    min_tstr_accuracy=0.3,
    min_recall=0.05,
    on_failure="warn",
)


def digits(rows) -> Images:
    bundle = load_digits()
    images = np.rint(bundle.images[rows][..., None] * 255 / 16).astype(np.uint8)
    return Images(images, bundle.target[rows].astype(np.int64), np.arange(len(images)))


REAL, HELD_OUT = digits(slice(0, 400)), digits(slice(400, 700))


def noisy(share: float) -> Images:
    """Returns held-out digits with a share of their pixels replaced by noise."""
    rng = np.random.default_rng(0)
    random = rng.integers(0, 256, HELD_OUT.images.shape).astype(np.uint8)
    images = np.where(rng.random(random.shape) < share, random, HELD_OUT.images)
    return Images(images, HELD_OUT.labels, HELD_OUT.ids)


@pytest.fixture(scope="module")
def network():
    return image_comparison.extractor(SETTINGS, REAL)


class AsDataset(Dataset):
    def __init__(self, data):
        self.images = image_comparison.uint8_tensor(data)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index]


def test_the_batched_path_equals_calculate_metrics(network, monkeypatch):
    """The registered extractor is built by name inside torch-fidelity; it gets this network's readout."""
    fake, seed = noisy(0.3), 7
    ours = image_quality.fidelity(
        image_comparison.features(network, fake), image_comparison.features(network, REAL), seed
    )
    build = torch_fidelity.utils.FEATURE_EXTRACTORS_REGISTRY["small_gray"]

    def with_readout(name, layers, **kwargs):
        return build(name, layers, readout=network.readout, **kwargs)

    monkeypatch.setitem(
        torch_fidelity.utils.FEATURE_EXTRACTORS_REGISTRY, "small_gray", with_readout
    )
    theirs = torch_fidelity.calculate_metrics(
        input1=AsDataset(fake),
        input2=AsDataset(REAL),
        feature_extractor="small_gray",
        feature_layer_fid="features",
        feature_layer_kid="features",
        feature_layer_prc="features",
        feature_layer_isc="logits",
        isc=True,
        fid=True,
        kid=True,
        prc=True,
        isc_splits=1,
        kid_subsets=50,
        kid_subset_size=150,
        prc_neighborhood=3,
        rng_seed=seed,
        cuda=False,
        save_cpu_ram=True,
        cache=False,
        verbose=False,
    )
    assert ours["fid"] == pytest.approx(theirs["frechet_inception_distance"], rel=1e-6)
    assert ours["kid"] == pytest.approx(theirs["kernel_inception_distance_mean"], rel=1e-5)
    assert ours["inception_score"] == pytest.approx(theirs["inception_score_mean"], rel=1e-6)
    assert ours["precision"] == pytest.approx(theirs["precision"])
    assert ours["recall"] == pytest.approx(theirs["recall"])


def test_scores_order_noise_levels_and_the_floor_is_lowest(network):
    compared = [
        image_comparison.compare(network, noisy(share), REAL, HELD_OUT, SETTINGS, 0)
        for share in (0.0, 0.1, 0.3, 1.0)
    ]
    fid = [scores["fid"] for scores in compared]
    assert fid == sorted(fid)
    assert fid[3] > 5 * fid[0]
    assert compared[0]["fid_floor"] == pytest.approx(fid[0], rel=0.5)
    assert compared[0]["recall"] > 0.7 > 0.2 > compared[3]["recall"]


def test_one_image_over_and_over_is_precise_but_recalls_nothing(network):
    rows = np.zeros(300, int)
    scores = image_comparison.compare(network, HELD_OUT[rows], REAL, HELD_OUT, SETTINGS, 0)
    assert scores["recall"] < 0.05
    assert scores["inception_score"] == pytest.approx(1.0, abs=0.01)


def test_many_records_are_compared_by_random_subsamples(network, monkeypatch):
    """Precision and recall take all pairs; and records sorted by class must not give a floor of one class."""
    monkeypatch.setattr(image_comparison, "MOST", 100)
    seen = []
    monkeypatch.setattr(
        image_comparison,
        "fidelity",
        lambda fake, real, *_: seen.append((fake, real)) or {"fid": 0.0},
    )
    order = np.argsort(HELD_OUT.labels, kind="stable")
    scores = image_comparison.compare(network, noisy(0.1), REAL, HELD_OUT[order], SETTINGS, 0)
    assert scores["images_compared"] == 100
    assert {len(side["features"]) for pair in seen for side in pair} == {100}
    everyone = image_comparison.features(network, HELD_OUT[order])["features"]
    floor = seen[-1][0]["features"]
    places = [int(torch.nonzero((everyone == row).all(1))[0, 0]) for row in floor]
    assert len(set(HELD_OUT.labels[order][places])) == 10
    assert not torch.equal(seen[0][0]["features"], seen[1][0]["features"])  # the repeats differ


def test_features_are_the_same_everywhere_and_the_readout_is_the_clients(network):
    other = image_comparison.extractor(SETTINGS, HELD_OUT)
    assert image_comparison.digest(other) == image_comparison.digest(network)
    assert not torch.equal(other.readout.weight, network.readout.weight)


@pytest.mark.parametrize("classes", [1, 2])
def test_a_client_with_one_or_two_classes_has_an_extractor_too(classes):
    few = REAL[REAL.labels < classes]
    network = image_comparison.extractor(SETTINGS, few)
    accuracy = (
        image_comparison.features(network, few)["logits"].argmax(1).numpy() == few.labels
    ).mean()
    assert accuracy > 0.95


def test_thresholds_complain_in_words():
    assert image_quality.complaints({"tstr_accuracy": 0.5, "recall": 0.5}, SETTINGS) == []
    assert image_quality.complaints({"tstr_accuracy": 0.1, "recall": 0.0}, SETTINGS) == [
        "tstr_accuracy is 0.100, below 0.3",
        "recall is 0.000, below 0.05",
    ]


def test_an_extractor_with_other_layer_names_works(network):
    """Inception calls its layers 2048 and logits_unbiased."""

    class Renamed(torch.nn.Module):
        features_list = ("2048", "logits_unbiased")

        def forward(self, images):
            return network(images)

    ours = image_comparison.compare(network, noisy(0.1), REAL, HELD_OUT, SETTINGS, 0)
    assert image_comparison.compare(Renamed(), noisy(0.1), REAL, HELD_OUT, SETTINGS, 0) == ours


def test_inception_without_weights_is_one_clear_sentence():
    settings = SETTINGS.model_copy(update={"extractor": "inception"})
    with pytest.raises(
        UserError, match="'inception_weights' parameter of quality must be the path"
    ):
        image_comparison.extractor(settings, REAL)
    absent = settings.model_copy(update={"inception_weights": "nowhere.pth"})
    with pytest.raises(UserError, match=r"nowhere\.pth"):
        image_comparison.extractor(absent, REAL)


@pytest.mark.parametrize(
    "content", [b"", b"no weights" * 40, b"PK\x03\x04" + bytes(200), pickle.dumps({"a": 1})]
)
def test_inception_weights_that_are_none_are_one_sentence(tmp_path, content):
    (tmp_path / "weights.pth").write_bytes(content)
    given = {"extractor": "inception", "inception_weights": str(tmp_path / "weights.pth")}
    with pytest.raises(
        UserError, match=r"Could not read the Inception weights .*weights\.pth: ."
    ) as told:
        image_comparison.extractor(SETTINGS.model_copy(update=given), REAL)
    assert "\n" not in str(told.value)


def test_inception_is_for_grey_and_rgb():
    settings = SETTINGS.model_copy(
        update={"extractor": "inception", "inception_weights": "nowhere.pth"}
    )
    four = Images(np.repeat(REAL.images, 4, axis=3), REAL.labels, REAL.ids)
    with pytest.raises(
        UserError, match=r"must be small_gray for images of 4 channels\. Got 'inception' instead"
    ):
        image_comparison.extractor(settings, four)


LITE = Encoder(network="efficientnet_lite0", side=32)
ON_ENCODER = SETTINGS.model_copy(update={"extractor": "encoder"})


@pytest.mark.slow
def test_an_encoders_features_order_noise_and_have_the_name_of_its_weights():
    network = image_comparison.extractor(ON_ENCODER, REAL, LITE)
    assert (
        image_comparison.digest(network)
        == Fixed(REAL.images.shape[1:], LITE).facts["weights_sha256"]
    )
    distances = [
        image_comparison.compare(network, noisy(level), REAL, HELD_OUT, SETTINGS, 0)["fid"]
        for level in (0.0, 0.6)
    ]
    assert distances == sorted(distances) and distances[0] < distances[-1] / 2


def test_an_encoder_that_the_profile_does_not_name_is_one_sentence():
    with pytest.raises(UserError, match="must be small_gray where the profile names no encoder"):
        image_comparison.extractor(ON_ENCODER, REAL)
