"""The classifier that inception scores are taken under: the data set's own network, trained on the real pool.

An experimenter's instrument: it has seen every client's records, and nothing of it may leave. The recipe stands below,
the seed is 0, the last iterate is used. It is made once for a pool and kept in `.scratch`, which Git ignores.
"""

import hashlib

from torch import nn

from pipelines import paths, releases
from pipelines.config import Params
from pipelines.datasets import labelled_images
from pipelines.files import new_folder, read_arrays, write_arrays
from pipelines.training import classifier, classify
from pipelines.training.tensors import device, state_of, with_state

RECIPE = {"epochs": 4, "batch": 128, "learning_rate": 2e-3, "one_cycle": True}
SEED = 0


def trained(params: Params, dataset: str) -> nn.Module:
    pool, profile = (
        labelled_images.load(paths.prepared(dataset) / "pool.npz"),
        params.profiles[dataset],
    )
    network = classify.new(profile, SEED, device(params.device))
    stamp = hashlib.sha256(f"{releases.digest(pool)} {RECIPE} {network}".encode()).hexdigest()[:16]
    folder = paths.SCRATCH / "judges" / f"{dataset}-{stamp}"
    if not folder.exists():
        classifier.fit(network, pool, seed=SEED, **RECIPE)
        with new_folder(folder) as new:
            write_arrays(new / "weights.safetensors", state_of(network))
    return with_state(network, read_arrays(folder / "weights.safetensors"))
