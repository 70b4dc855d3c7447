"""Reads a classifier that a client handed out beside its synthetic images.

The generators of WITH_CLASSIFIER release one. An export of theirs holds its weights, and card.json
says which network they are of:

    from pipelines.config import load
    from pipelines.synthesis import released_classifier
    model = released_classifier.read("data/synthetic/digits/c0/dp_head", load().profiles["digits"])
    model.predict(images)

It is as private as the images: the same release paid for it, and no record is read here.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import nn

from pipelines.config.data import ON_FIXED_FEATURES, Profile
from pipelines.datasets.labelled_images import Images, unlabelled
from pipelines.errors import UserError
from pipelines.files import AGAIN, read_arrays, read_json, require, sha256
from pipelines.paths import CLASSIFIER
from pipelines.training import classifier, fixed_features
from pipelines.training.tensors import State, logits, tensors, with_state

# that generators release; a card may say anything
NETWORKS = ("mlp", "cnn", *ON_FIXED_FEATURES)


@dataclass(frozen=True)
class ReleasedClassifier:
    """Holds a classifier that a client handed out.

    Attributes:
        model: The network with its weights, of float images [B, C, H, W].
        network: The name of the network.
        shape: (height, width, channels) of an image.
    """

    model: nn.Module
    network: str
    shape: tuple[int, int, int]

    def predict(self, data: Images | np.ndarray) -> np.ndarray:
        """Returns the most likely class of every image, int64 [n].

        Args:
            data: The images, or an array uint8 [n, H, W, C] of them.

        Raises:
            UserError: They are no such array, or have another shape than the classifier's.
        """
        return self.probabilities(data).argmax(1)

    def probabilities(self, data: Images | np.ndarray) -> np.ndarray:
        """Returns the probability of each class of every image, float32 [n, K].

        Args:
            data: The images, or an array uint8 [n, H, W, C] of them.

        Raises:
            UserError: They are no such array, or have another shape than the classifier's.
        """
        if not isinstance(data, Images):
            data = unlabelled(np.asarray(data))
        shape = data.images.shape[1:]
        if shape != self.shape:
            raise UserError(
                f"This classifier takes images of shape {list(self.shape)}. Got {list(shape)} "
                "instead."
            )
        images, _ = tensors(data)
        return logits(self.model, images).softmax(1).numpy()


def read(folder: Path | str, profile: Profile) -> ReleasedClassifier:
    """Reads the classifier of an export.

    Args:
        folder: The folder of the export.
        profile: Of the data set: its shape, classes and encoder.

    Raises:
        UserError: The export holds no classifier, is damaged, or is of another profile.
    """
    folder = Path(folder)
    card = read_json(folder / "card.json")
    network = _network(folder, card, profile)
    _check_features(folder, card, network, profile)
    arrays = _arrays(folder)
    built = profile.model_copy(update={"classifier": network})
    try:
        fresh = classifier.new(built, seed=0)
    except (RuntimeError, ValueError):
        raise UserError(
            f"{folder / 'card.json'} names a network that takes no images of shape "
            f"{list(profile.shape)} ({network}). {AGAIN}"
        ) from None
    model = with_state(fresh, arrays).eval()
    return ReleasedClassifier(model, network, tuple(profile.shape))


def _network(folder: Path, card: dict, profile: Profile) -> str:
    """Returns the name of the network that a card states.

    Raises:
        UserError: The card states no classifier, no network that a generator releases, or images
            or classes that are not the profile's.
    """
    path = folder / "card.json"
    if "classifier" not in card:
        raise UserError(f"{folder} holds no classifier: its generator released images alone.")
    stated = card["classifier"]
    require(path, stated, "network", "shape", "classes")
    if stated["network"] not in NETWORKS:
        raise UserError(f"{path} names no network that a generator releases. {AGAIN}")
    require(path, card, "datasheet")
    require(path, card["datasheet"])
    owed = {"shape": list(profile.shape), "classes": profile.classes}
    for fact, value in owed.items():
        if stated[fact] != value:
            raise UserError(
                f"{folder} is of another profile: the 'classifier.{fact}' on its card must be "
                f"{value}. Got {stated[fact]!r} instead."
            )
    names = card["datasheet"].get("class_names")
    if names and profile.class_names and names != profile.class_names:
        raise UserError(f"{folder} is of another profile: its classes have other names.")
    return stated["network"]


def _check_features(folder: Path, card: dict, network: str, profile: Profile) -> None:
    """Checks that a linear layer was trained on the features that the profile gives.

    Raises:
        UserError: The card names other features, or the profile lacks the encoder.
    """
    fixed = fixed_features.of(profile, network)
    if not fixed:
        return
    path = folder / "card.json"
    require(path, card, "privacy")
    require(path, card["privacy"], "details")
    require(path, card["privacy"]["details"], "features")
    lacks_encoder = network == "encoder" and not fixed.encoder
    if lacks_encoder or card["privacy"]["details"]["features"] != fixed.facts:
        raise UserError(
            f"{folder} is of another profile: its classifier is on features that the 'encoder' of "
            f"this profile does not give ({network})."
        )


def _arrays(folder: Path) -> State:
    """Returns the weights of the classifier.

    Raises:
        UserError: Their file is absent or damaged, or is another than SHA256SUMS says.
    """
    path = folder / CLASSIFIER
    arrays = read_arrays(path)
    try:
        sums = (folder / "SHA256SUMS").read_text().splitlines()
    except (OSError, ValueError) as error:
        raise UserError(f"Could not read {folder / 'SHA256SUMS'}: {error}. {AGAIN}") from error
    if f"{sha256(path)}  {CLASSIFIER}" not in sums:
        raise UserError(f"{path} is another than its SHA256SUMS says. {AGAIN}")
    if not all(array.dtype == np.float32 and np.isfinite(array).all() for array in arrays.values()):
        raise UserError(f"{path} holds no finite weights. {AGAIN}")
    return arrays
