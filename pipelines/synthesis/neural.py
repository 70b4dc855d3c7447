"""What the generators made of a network share: building, state, sampling."""

import numpy as np
import torch

from models.generator import MlpGenerator
from pipelines.datasets.containers import Images, synthetic
from pipelines.synthesis.registry import Space
from pipelines.training.tensors import state_of, with_state

PUBLIC = ("shape", "classes", "latent", "hidden", "histogram")  # entries of a state that are not weights


def generator(space: Space, *, latent: int, seed: int, hidden: int = 128) -> MlpGenerator:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MlpGenerator(shape=space.shape, classes=space.classes, latent=latent, hidden=hidden)


def state(network: MlpGenerator) -> dict[str, np.ndarray]:
    """Weights and what is needed to build the network again; labels are uniform over the declared classes."""
    channels, height, width = network.out
    return {
        **state_of(network),
        "shape": np.array([height, width, channels]),
        "classes": np.array(network.classes),
        "latent": np.array(network.latent),
        "hidden": np.array(network.layers[0].out_features),
        "histogram": np.full(network.classes, 1 / network.classes),
    }


def sample(state: dict[str, np.ndarray], count: int, seed: int) -> Images:
    """`count` images; labels drawn from the state's histogram, latents uniform."""
    height, width, channels = (int(side) for side in state["shape"])
    space = Space(height, width, channels, int(state["classes"]))
    network = generator(space, latent=int(state["latent"]), hidden=int(state["hidden"]), seed=0)
    with_state(network, {name: array for name, array in state.items() if name not in PUBLIC})
    z, _ = network.draw(count, torch.Generator().manual_seed(seed))
    labels = np.random.default_rng(seed).choice(space.classes, size=count, p=state["histogram"])
    with torch.no_grad():
        pixels = network(z, torch.from_numpy(labels))
    return synthetic(pixels.permute(0, 2, 3, 1).numpy(), labels)
