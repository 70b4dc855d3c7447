"""A client's own model, with two read-outs of one set of weights. It is private, and stays at the client.

Weights that were trained with the client's class shares in the loss are read with them on the client's
own images, and without them on everybody's. The file of a personal model holds both read-outs:

    from pipelines.config import load
    from pipelines.federation.home import personal
    model = personal.read("models/private/personal/digits/dp_moments/pppfl-dp_moments/c0.safetensors",
                          load().profiles["digits"])
    model.predict(images)                       # of the client's own kind
    model.predict(images, elsewhere=True)       # of everybody's
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from pipelines.config.data import Profile
from pipelines.datasets.labelled_images import Images, unlabelled
from pipelines.errors import UserError
from pipelines.files import AGAIN, read_arrays, write_arrays
from pipelines.training import classifier
from pipelines.training.tensors import State, logits, state_of, tensors, with_state

AT_HOME = "readout.at_home"
ELSEWHERE = "readout.elsewhere"
# before the names of the weights of the network that was trained alone
ALONE = "alone."


@dataclass(frozen=True)
class Personal:
    """Holds one client's model.

    Attributes:
        model: the network with the client's weights.
        at_home: what is added to the logits on the client's own images, float32 [K].
        elsewhere: what is added to the logits on everybody's images, float32 [K].
        alone: a network that was trained on the client's records alone, or None. On the client's own
            images the mean of both networks' probabilities counts.
    """

    model: nn.Module
    at_home: np.ndarray
    elsewhere: np.ndarray
    alone: nn.Module | None = None

    def predict(self, data: Images | np.ndarray, *, elsewhere: bool = False) -> np.ndarray:
        """Returns the most likely class of every image, int64 [n].

        Args:
            data: the images, or an array uint8 [n, H, W, C] of them.
            elsewhere: whether they are everybody's, and not of the client's own kind.
        """
        return self.probabilities(data, elsewhere=elsewhere).argmax(1)

    def probabilities(self, data: Images | np.ndarray, *, elsewhere: bool = False) -> np.ndarray:
        """Returns the probability of each class of every image, float32 [n, K].

        Args:
            data: the images, or an array uint8 [n, H, W, C] of them.
            elsewhere: whether they are everybody's, and not of the client's own kind.
        """
        if isinstance(data, np.ndarray):
            data = unlabelled(data)
        images, _ = tensors(data, next(self.model.parameters()).device)
        offset = torch.as_tensor(self.elsewhere if elsewhere else self.at_home)
        outputs = logits(self.model, images)
        scores = (outputs + offset.to(outputs.device)).softmax(1)
        if self.alone and not elsewhere:
            scores = (scores + logits(self.alone, images).softmax(1)) / 2
        return scores.cpu().numpy()

    @property
    def arrays(self) -> State:
        """Returns what a file holds: the weights and both read-outs."""
        arrays = {**state_of(self.model), AT_HOME: self.at_home, ELSEWHERE: self.elsewhere}
        if self.alone:
            arrays |= {ALONE + name: array for name, array in state_of(self.alone).items()}
        return arrays


def balanced(model: nn.Module, log_prior: np.ndarray, alone: nn.Module | None = None) -> Personal:
    """Returns the personal model of weights that were trained with the prior in the loss.

    Args:
        model: the network with these weights.
        log_prior: the logarithm of the client's class shares, [K].
        alone: as of `Personal`.
    """
    return Personal(model, at_home=log_prior, elsewhere=np.zeros_like(log_prior), alone=alone)


def plain(model: nn.Module, classes: int) -> Personal:
    """Returns the personal model of weights that are read alike everywhere."""
    zeros = np.zeros(classes, np.float32)
    return Personal(model, at_home=zeros, elsewhere=zeros)


def prior_off(model: nn.Module, log_prior: np.ndarray) -> Personal:
    """Returns the personal model of weights that learned the prior, which is taken off elsewhere."""
    return Personal(model, at_home=np.zeros_like(log_prior), elsewhere=-log_prior)


def write(path: Path, personal: Personal) -> None:
    """Writes a personal model."""
    write_arrays(path, personal.arrays)


def read(path: Path | str, profile: Profile, network: str | None = None) -> Personal:
    """Reads a personal model.

    Args:
        path: its file.
        profile: of the data set, whose `classifier` the network is.
        network: the name of another network, of a method that trains its own.

    Raises:
        UserError: the file is absent or damaged, or is of another network.
    """
    arrays = read_arrays(Path(path))
    if not {AT_HOME, ELSEWHERE} <= set(arrays):
        raise UserError(f"{path} holds no personal model. {AGAIN}")
    at_home = arrays.pop(AT_HOME)
    elsewhere = arrays.pop(ELSEWHERE)
    of_alone = {}
    for name in [name for name in arrays if name.startswith(ALONE)]:
        of_alone[name.removeprefix(ALONE)] = arrays.pop(name)
    built = profile.model_copy(update={"classifier": network or profile.classifier})
    model = with_state(classifier.new(built, seed=0), arrays)
    alone = with_state(classifier.new(built, seed=0), of_alone) if of_alone else None
    return Personal(model, at_home, elsewhere, alone)
