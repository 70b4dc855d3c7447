"""Tests that a classifier comes back as it was released, and is refused where it does not fit."""

import json
from pathlib import Path
from types import ModuleType

import exported
import numpy as np
import pytest
import torch
from exported import PARAMS, PROFILE

from models.fixed_features import FixedFeatures
from pipelines.config.data import Encoder
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.files import read_json, sha256, standard, write_arrays, write_json
from pipelines.paths import CLASSIFIER
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import SeededForTests
from pipelines.synthesis import (
    dp_head,
    dp_moments,
    dp_teacher,
    export,
    joint_head,
    release,
    released_classifier,
)
from pipelines.training import fixed_features, linear_head
from pipelines.training.encoder_weights import Encoded
from pipelines.training.tensors import logits, tensors

BUDGET = Budget(5.0, 1e-5)
FEW = {"schedules": [{"from_signal": 0, "steps": 2, "learning_rate": 4.0}]}
QUICK = {
    "steps": 2,
    "warm_start": {"images": 40, "epochs": 1, "batch": 8, "learning_rate": 1e-3},
    "augmentation": None,
}
LITE = Encoder(network="efficientnet_lite0", side=32)
TINY = Encoder(network="resnet18", weights="tiny", side=32)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """Keeps features of records out of the project's folder. The public basis stays there."""
    monkeypatch.setattr(linear_head, "FEATURES", tmp_path / "features")


class Quarters(FixedFeatures):
    """Has the mean of each quarter of an image as its features, times a factor."""

    def __init__(self, factor: float):
        super().__init__(count=4)
        self.factor = factor

    def forward(self, images):
        return self.factor * torch.nn.functional.adaptive_avg_pool2d(images.mean(1), 2).flatten(1)


@pytest.fixture
def tiny_encoder(monkeypatch):
    """Makes every encoder a tiny one. The path of its weights is the hash of them."""

    def encoded(encoder: Encoder) -> Encoded:
        return Encoded(Quarters(len(encoder.weights)), encoder.weights)

    monkeypatch.setattr(fixed_features, "_encoded", encoded)
    fixed_features.module.cache_clear()
    yield
    fixed_features.module.cache_clear()


def profile_of(**changes):
    return PROFILE.model_copy(update=changes)


def images(profile, count: int = 40, seed: int = 0) -> Images:
    """Returns random images of all classes."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (count, *profile.shape)).astype(np.uint8)
    return Images(pixels, np.arange(count) % profile.classes, np.arange(count))


def handed_out(folder: Path, generator: ModuleType, profile=PROFILE, **changes) -> dict:
    """Writes the export of a fitted generator, as the stage does, and returns the state."""
    name = generator.__name__.rpartition(".")[2]
    block = PARAMS.generator("digits", name)
    settings = type(block).model_validate({**block.model_dump(), **changes})
    plan = generator.plan(settings, BUDGET, release.public_space(profile))
    state = generator.fit(images(profile), plan, SeededForTests(0), seed=0)
    statement = standard(release.described(plan, SeededForTests(0)).as_dict())
    classifier = release.classifier(folder, name, state, statement)
    data = generator.sample(state, 30, seed=0)
    card = export.card(
        dataset="digits",
        client="c0",
        generator=name,
        release={"name": "f00d", "weak": [], "privacy": statement},
        data=data,
        profile=profile,
        classifier=classifier,
    )
    folder.mkdir()
    export.write(folder, data, card, classifier)
    return state


def expected(model: torch.nn.Module, data: Images) -> np.ndarray:
    """Returns the probabilities of a generator's own classifier."""
    return logits(model, tensors(data)[0]).softmax(1).numpy()


@pytest.fixture
def head(tmp_path) -> Path:
    """Returns an export of `dp_head` on scattering features."""
    handed_out(tmp_path / "head", dp_head, **FEW)
    return tmp_path / "head"


@pytest.mark.parametrize(("network", "side"), [("mlp", 8), ("cnn", 16)])
def test_the_classifier_of_dp_teacher_comes_back(tmp_path, network, side):
    profile = profile_of(shape=[side, side, 1])
    state = handed_out(tmp_path / "out", dp_teacher, profile, classifier=network, **QUICK)
    model = released_classifier.read(tmp_path / "out", profile)
    data = images(profile, seed=1)
    probabilities = expected(dp_teacher.classifier(state), data)
    assert model.network == network
    np.testing.assert_allclose(model.probabilities(data), probabilities, atol=1e-6)
    np.testing.assert_array_equal(model.predict(data.images), probabilities.argmax(1))
    assert len(set(model.predict(data))) > 1


@pytest.mark.parametrize("generator", [dp_head, joint_head])
def test_a_head_on_scattering_features_comes_back(tmp_path, generator):
    state = handed_out(tmp_path / "out", generator, **FEW)
    model = released_classifier.read(str(tmp_path / "out"), PROFILE)
    data = images(PROFILE, seed=1)
    probabilities = expected(generator.classifier(state), data)
    assert model.network == "scatter"
    np.testing.assert_array_equal(model.probabilities(data), probabilities)
    np.testing.assert_array_equal(model.predict(data), probabilities.argmax(1))
    assert len(set(model.predict(data))) > 1


def test_a_head_on_an_encoder_s_features_comes_back(tmp_path):
    profile = profile_of(encoder=LITE)
    state = handed_out(tmp_path / "out", dp_head, profile, network="encoder", **FEW)
    model = released_classifier.read(tmp_path / "out", profile)
    data = images(profile, seed=1)
    probabilities = expected(dp_head.classifier(state, LITE), data)
    assert model.network == "encoder"
    np.testing.assert_allclose(model.probabilities(data), probabilities, atol=1e-5)
    np.testing.assert_array_equal(model.predict(data), probabilities.argmax(1))


def test_it_is_refused_where_the_profile_has_no_encoder_or_another(tmp_path, tiny_encoder):
    handed_out(tmp_path / "out", dp_head, profile_of(encoder=TINY), network="encoder", **FEW)
    other = TINY.model_copy(update={"weights": "other"})
    for encoder in (None, other):
        with pytest.raises(UserError, match="on features that the 'encoder' of this profile does"):
            released_classifier.read(tmp_path / "out", profile_of(encoder=encoder))


def test_a_head_of_a_statement_without_a_network_is_on_scattering_features():
    state = {dp_head.HEAD: np.zeros((3, 5), np.float32)}
    statement = {"details": {"settings": {}}}
    assert release.classifier(Path(), "dp_head", state, statement).network == "scatter"


def test_images_alone_have_no_classifier(tmp_path):
    handed_out(tmp_path / "out", dp_moments)
    assert not (tmp_path / "out" / CLASSIFIER).exists()
    with pytest.raises(UserError, match="holds no classifier: its generator released images alone"):
        released_classifier.read(tmp_path / "out", PROFILE)


@pytest.mark.parametrize("changes", [{"shape": [16, 16, 1]}, {"shape": [4, 16, 1]}, {"classes": 9}])
def test_it_is_refused_by_another_profile(head, changes):
    (fact,) = changes
    with pytest.raises(UserError, match=f"of another profile: the 'classifier.{fact}' on its card"):
        released_classifier.read(head, profile_of(**changes))


def test_classes_of_other_names_are_refused_where_both_are_declared(head):
    card = json.loads((head / "card.json").read_text())
    card["datasheet"]["class_names"] = list("abcdefghij")
    (head / "card.json").write_text(json.dumps(card))
    released_classifier.read(head, PROFILE)
    released_classifier.read(head, profile_of(class_names=list("abcdefghij")))
    with pytest.raises(UserError, match="its classes have other names"):
        released_classifier.read(head, profile_of(class_names=list("jihgfedcba")))


def summed(folder: Path) -> None:
    """Writes SHA256SUMS for the classifier as it is now."""
    (folder / "SHA256SUMS").write_text(f"{sha256(folder / CLASSIFIER)}  {CLASSIFIER}\n")


def test_a_file_that_was_changed_is_refused(head):
    """The file is still one of safetensors, with another bit in its last number."""
    content = bytearray((head / CLASSIFIER).read_bytes())
    content[-1] ^= 1
    (head / CLASSIFIER).write_bytes(content)
    with pytest.raises(UserError, match=f"{CLASSIFIER} is another than its SHA256SUMS says"):
        released_classifier.read(head, PROFILE)


@pytest.mark.parametrize("name", [CLASSIFIER, "card.json", "SHA256SUMS"])
@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"\xff\xfe")])
def test_a_damaged_file_is_one_sentence(head, name, spoil):
    spoil(head / name)
    with pytest.raises(UserError, match=f"Could not read .*{name}"):
        released_classifier.read(head, PROFILE)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({dp_head.LINEAR: np.full((10, 215), np.nan, np.float32)}, "holds no finite weights"),
        ({dp_head.LINEAR: np.zeros((10, 215), np.int64)}, "holds no finite weights"),
        ({dp_head.LINEAR: np.zeros((9, 215), np.float32)}, "do not fit their network"),
        ({"other": np.zeros(3, np.float32)}, "do not fit their network"),
    ],
)
def test_weights_that_cannot_be_the_classifiers_are_refused(head, arrays, said):
    write_arrays(head / CLASSIFIER, arrays)
    summed(head)
    with pytest.raises(UserError, match=said):
        released_classifier.read(head, PROFILE)


@pytest.mark.parametrize(
    "change",
    [
        {"classifier": 5},
        {"classifier": {"network": "scatter"}},
        {"classifier": {"network": "resnet", "shape": [8, 8, 1], "classes": 10}},
        {"classifier": {"network": ["mlp"], "shape": [8, 8, 1], "classes": 10}},
        {"classifier": {"network": "mlp", "shape": [8, 8, 1], "classes": 10}},
        {"datasheet": None},
        {"privacy": {}},
        {"privacy": {"details": {"features": {"basis_sha256": "other"}}}},
    ],
)
def test_a_card_that_says_something_else_is_refused(head, change):
    card = json.loads((head / "card.json").read_text())
    (head / "card.json").write_text(json.dumps(card | change))
    with pytest.raises(UserError):
        released_classifier.read(head, PROFILE)


def test_images_that_do_not_fit_are_refused(head):
    model = released_classifier.read(head, PROFILE)
    with pytest.raises(UserError, match=r"takes images of shape \[8, 8, 1\]. Got \[4, 16, 1\]"):
        model.predict(np.zeros((2, 4, 16, 1), np.uint8))
    with pytest.raises(UserError, match="must be uint8"):
        model.predict(np.zeros((2, 8, 8, 1)))


def test_a_network_that_takes_no_such_images_is_refused(head):
    card = read_json(head / "card.json")
    write_json(head / "card.json", {**card, "classifier": {**card["classifier"], "network": "cnn"}})
    with pytest.raises(UserError, match=r"takes no images of shape \[8, 8, 1\] \(cnn\)"):
        released_classifier.read(head, PROFILE)


@pytest.mark.parametrize("data", [None, [1, 2], "images"])
def test_what_is_no_array_of_images_is_refused(head, data):
    with pytest.raises(UserError, match="must be uint8"):
        released_classifier.read(head, PROFILE).predict(data)


def test_the_sums_and_the_other_files_are_those_of_any_export(head, tmp_path):
    """The folder for other tools holds images alone."""
    sums = (head / "SHA256SUMS").read_text()
    assert f"{sha256(head / CLASSIFIER)}  {CLASSIFIER}\n" in sums
    plain = exported.written(tmp_path / "plain", exported.images())
    names = {path.relative_to(plain) for path in plain.rglob("*")}
    assert {path.relative_to(head) for path in head.rglob("*")} == names | {Path(CLASSIFIER)}
