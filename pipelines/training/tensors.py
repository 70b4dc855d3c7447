"""Converts between labelled images in numpy and torch: devices, threads, batches, model states."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError

# images of a forward pass: larger activations may get new pages each time, at twice the cost
AT_ONCE = 100
# a model's weights as plain arrays: what messages and files carry
State = dict[str, np.ndarray]
# of the environment: another number of threads, which gives other bytes
THREADS = "FEDLENS_THREADS"


def device(name: str) -> torch.device:
    """Returns the torch device of the `device` parameter; `auto` takes a GPU when there is one.

    Raises:
        UserError: The parameter is `cuda` and there is no GPU.

    >>> device("cpu")
    device(type='cpu')
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "The 'device' parameter must be auto or cpu on a machine without a GPU. "
            "Got 'cuda' instead. (params.yaml)"
        )
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def threads() -> int:
    """Returns how many threads torch takes: one, or as FEDLENS_THREADS says."""
    setting = os.environ.get(THREADS, "1")
    if not (setting.isdecimal() and int(setting)):
        sys.exit(
            f"Error: The environment variable {THREADS} must be a positive int. "
            f"Got {setting!r} instead."
        )
    return int(setting)


# How many threads share a convolution's sums decides in which order they are added, and torch takes
# as many as there are cores: the same bytes on every machine need a number that no machine chooses.
torch.set_num_threads(threads())


def tensors(data: Images, on: torch.device | str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the pixels, float32 [n, C, H, W] in [0, 1], and the labels, int64 [n]."""
    pixels = torch.from_numpy(data.pixels).permute(0, 3, 1, 2).contiguous()
    return pixels.to(on), torch.from_numpy(data.labels).to(on)


def logits(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Returns the logits [n, K] of float images [n, C, H, W], in evaluation mode."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(part) for part in images.split(AT_ONCE)])


def state_of(model: nn.Module) -> State:
    """Returns a copy of a model's weights as arrays by name."""
    state = {}
    for name, tensor in model.state_dict().items():
        state[name] = tensor.detach().cpu().numpy().copy()
    return state


def with_state(model: nn.Module, state: State) -> nn.Module:
    """Replaces a module's weights, and returns the module.

    Raises:
        UserError: The weights are those of another network.
    """
    try:
        model.load_state_dict({name: torch.as_tensor(array) for name, array in state.items()})
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"Weights do not fit their network: {reason}. Run the stage that makes them again."
        ) from error
    return model


@contextmanager
def one_thread() -> Iterator[None]:
    """Makes torch use one thread inside: sums are added in one order on every machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def packed(
    weights: dict[str, torch.Tensor], optimiser: torch.optim.Optimizer, generator: torch.Generator
) -> State:
    """Returns training in mid-course as plain arrays.

    Args:
        weights: The parameters by name.
        optimiser: The optimiser, whose moments are stored.
        generator: The stream of random numbers.
    """
    state = {f"weights.{name}": tensor for name, tensor in weights.items()}
    for number, moments in optimiser.state_dict()["state"].items():
        for name, tensor in moments.items():
            state[f"optimiser.{number}.{name}"] = tensor
    state["stream"] = generator.get_state()
    return {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}


def unpacked(
    state: State,
    weights: dict[str, torch.Tensor],
    optimiser: torch.optim.Optimizer,
    generator: torch.Generator,
) -> None:
    """Puts back what `packed` took, in place.

    Args:
        state: The arrays from `packed`.
        weights: The parameters by name.
        optimiser: The optimiser.
        generator: The stream of random numbers.
    """
    moments = {}
    for key, array in state.items():
        kind, _, name = key.partition(".")
        if kind == "weights":
            weights[name].data.copy_(torch.tensor(array))
        elif kind == "optimiser":
            number, _, name = name.partition(".")
            moments.setdefault(int(number), {})[name] = torch.tensor(array)
    optimiser.load_state_dict(
        {"state": moments, "param_groups": optimiser.state_dict()["param_groups"]}
    )
    generator.set_state(torch.tensor(state["stream"]))
