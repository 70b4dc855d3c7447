"""Between numpy containers and torch: devices, batches, model states."""

import numpy as np
import torch
from torch import nn

from pipelines.datasets.containers import Images
from pipelines.errors import UserError

State = dict[str, np.ndarray]  # a model's weights as plain arrays: what messages and files carry


def device(name: str) -> torch.device:
    """The torch device of the `device` parameter; `auto` takes a GPU when there is one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "The 'device' parameter must be auto or cpu on a machine without a GPU. Got 'cuda' instead. (params.yaml)"
        )
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def tensors(data: Images, on: torch.device | str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    """(float32 [n, C, H, W] in [0, 1], int64 [n])."""
    pixels = torch.from_numpy(data.pixels).permute(0, 3, 1, 2).contiguous()
    return pixels.to(on), torch.from_numpy(data.labels).to(on)


def state_of(model: nn.Module) -> State:
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in model.state_dict().items()}


def with_state(model: nn.Module, state: State) -> nn.Module:
    """The same module, its weights replaced."""
    model.load_state_dict({name: torch.as_tensor(array) for name, array in state.items()})
    return model
