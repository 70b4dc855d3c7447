"""Holds what the generators made of a network share: building, checkpoints, state, sampling."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from models.generator import GENERATORS, Generator
from pipelines.datasets.labelled_images import Images, synthetic
from pipelines.files import read_arrays, write_arrays
from pipelines.synthesis.base import Space
from pipelines.training.tensors import packed, state_of, unpacked, with_state

# entries of a state that are not weights
PUBLIC = ("network", "shape", "classes", "latent", "hidden", "histogram")
# a state holds the place of its network's name here
NETWORKS = sorted(GENERATORS)
# images sampled at a time: the paper's generator takes 2 MB of memory for each
AT_ONCE = 500


def generator(
    network: str, space: Space, *, latent: int, seed: int, hidden: int = 128
) -> Generator:
    """Returns a freshly initialised generator network.

    Args:
        network: A key of models.generator.GENERATORS.
        space: The shape and the number of classes of the images.
        latent: The number of latent values per image.
        seed: The seed of the initial weights.
        hidden: The width of hidden layers.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GENERATORS[network](
            shape=space.shape, classes=space.classes, latent=latent, hidden=hidden
        )


@dataclass(frozen=True)
class Training:
    """Holds a generator in training: all that a checkpoint must have of it."""

    network: Generator
    optimiser: torch.optim.Optimizer
    stream: torch.Generator

    def save(self, folder: Path) -> None:
        """Writes weights, optimiser and random stream to a file in the folder."""
        state = packed(dict(self.network.named_parameters()), self.optimiser, self.stream)
        write_arrays(folder / "generator.safetensors", state)

    def load(self, folder: Path) -> None:
        """Puts back what `save` wrote, in place."""
        state = read_arrays(folder / "generator.safetensors")
        unpacked(state, dict(self.network.named_parameters()), self.optimiser, self.stream)


def state(network: Generator) -> dict[str, np.ndarray]:
    """Returns the weights and what is needed to build the network again.

    Labels are uniform over the declared classes.
    """
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
    """Draws synthetic images: labels from the state's histogram, latents uniform.

    Images are made AT_ONCE at a time, and the last that are too many are dropped: batch norm then
    sees batches of one size.

    Args:
        state: A state from `state`.
        count: How many images to draw.
        seed: The seed of the draw.

    >>> space = Space(height=8, width=8, channels=1, classes=3)
    >>> images = sample(state(generator("conv", space, latent=4, seed=0)), count=2, seed=0)
    >>> images.images.shape, images.labels.dtype
    ((2, 8, 8, 1), dtype('int64'))
    """
    height, width, channels = state["shape"].tolist()
    space = Space(height, width, channels, int(state["classes"]))
    name = NETWORKS[int(state["network"])]
    latent = int(state["latent"])
    network = generator(name, space, latent=latent, hidden=int(state["hidden"]), seed=0)
    with_state(network, {name: array for name, array in state.items() if name not in PUBLIC})
    drawn = -(-count // AT_ONCE) * AT_ONCE
    z, _ = network.draw(drawn, torch.Generator().manual_seed(seed))
    labels = np.random.default_rng(seed).choice(space.classes, size=drawn, p=state["histogram"])
    batches = []
    with torch.no_grad():
        for latents, batch_labels in zip(z.split(AT_ONCE), torch.from_numpy(labels).split(AT_ONCE)):
            batches.append(network(latents, batch_labels))
    pixels = torch.cat(batches)
    return synthetic(pixels[:count].permute(0, 2, 3, 1).numpy(), labels[:count])
