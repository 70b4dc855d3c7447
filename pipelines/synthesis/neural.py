"""What the generators made of a network share: building, training in mid-course, state, sampling."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from models.generator import GENERATORS, Generator
from pipelines.datasets.labelled_images import Images, synthetic
from pipelines.files import read_arrays, write_arrays
from pipelines.synthesis.base import Space
from pipelines.training.tensors import packed, state_of, unpacked, with_state

PUBLIC = (
    "network",
    "shape",
    "classes",
    "latent",
    "hidden",
    "histogram",
)  # entries of a state that are not weights
NETWORKS = sorted(GENERATORS)  # a state holds the place of its network's name here
AT_ONCE = 500  # images sampled together: the paper's generator takes 2 MB of memory for each


def generator(
    network: str, space: Space, *, latent: int, seed: int, hidden: int = 128
) -> Generator:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GENERATORS[network](
            shape=space.shape, classes=space.classes, latent=latent, hidden=hidden
        )


@dataclass(frozen=True)
class Training:
    """A generator in training: what a checkpoint must hold of it."""

    network: Generator
    optimiser: torch.optim.Optimizer
    stream: torch.Generator

    def save(self, folder: Path) -> None:
        state = packed(dict(self.network.named_parameters()), self.optimiser, self.stream)
        write_arrays(folder / "generator.safetensors", state)

    def load(self, folder: Path) -> None:
        state = read_arrays(folder / "generator.safetensors")
        unpacked(state, dict(self.network.named_parameters()), self.optimiser, self.stream)


def state(network: Generator) -> dict[str, np.ndarray]:
    """Weights and what is needed to build the network again; labels are uniform over the declared classes."""
    channels, height, width = network.out
    return {
        **state_of(network),
        "network": np.array(NETWORKS.index(network.name)),
        "shape": np.array([height, width, channels]),
        "classes": np.array(network.classes),
        "latent": np.array(network.latent),
        "hidden": np.array(network.hidden),
        "histogram": np.full(network.classes, 1 / network.classes),
    }


def sample(state: dict[str, np.ndarray], count: int, seed: int) -> Images:
    """`count` images; labels drawn from the state's histogram, latents uniform. They are made AT_ONCE at a time, more
    than asked for where need be: batch norm then sees batches of one size."""
    height, width, channels = (int(side) for side in state["shape"])
    space = Space(height, width, channels, int(state["classes"]))
    name = NETWORKS[int(state["network"])]
    network = generator(
        name, space, latent=int(state["latent"]), hidden=int(state["hidden"]), seed=0
    )
    with_state(network, {name: array for name, array in state.items() if name not in PUBLIC})
    made = -(-count // AT_ONCE) * AT_ONCE
    z, _ = network.draw(made, torch.Generator().manual_seed(seed))
    labels = np.random.default_rng(seed).choice(space.classes, size=made, p=state["histogram"])
    with torch.no_grad():
        parts = zip(z.split(AT_ONCE), torch.from_numpy(labels).split(AT_ONCE))
        pixels = torch.cat([network(*part) for part in parts])
    return synthetic(pixels[:count].permute(0, 2, 3, 1).numpy(), labels[:count])
