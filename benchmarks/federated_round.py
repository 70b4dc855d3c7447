"""Measures what a round of a federation costs beside the bare training loops in it, in CPU time.

    python -m benchmarks.federated_round          # about five minutes on one core

Five clients have as many images as MNIST's profile says. They train the MNIST CNN for one local
epoch; PPPFL takes its inner steps and its query. Bare is the loop that a tutorial would write. It
has the same network, the same batch size, and the same optimiser or learn2learn call. Its records
are tensors already, and nothing is sent, stored or summed.

Both take turns on one thread, and the least CPU time of several rounds counts. `evaluation_share`
is the cost of scoring the shared model of every fifth round on a test set of 10,000 images. It is a
share of the sum of this cost and 30 rounds. Fine-tuning, the other work of a stage, is not counted.
"""

import argparse
import math
import time
from collections.abc import Callable
from functools import partial

import learn2learn as l2l
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.common import publish
from models import classifiers
from pipelines import config, methods
from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.federation.algorithms import base
from pipelines.federation.core.messages import Payload
from pipelines.federation.core.task import Task
from pipelines.federation.inprocess import in_process
from pipelines.training.classifier import batches
from pipelines.training.tensors import tensors

CLIENTS = 5
# Number of test images.
TEST = 10_000
# Number of rounds, and of those whose model is scored.
ROUNDS = 30
SCORED = 6
KEY = "cpu_ratio_over_bare_training"
Tensors = tuple[torch.Tensor, torch.Tensor]
BUILD = partial(classifiers.build, "cnn", shape=(28, 28, 1), classes=10, seed=0)


def images(count: int, seed: int) -> Images:
    """Returns images of noise with random labels, in MNIST's shape."""
    rng = np.random.default_rng(seed)
    return Images(
        rng.integers(0, 256, (count, 28, 28, 1)).astype(np.uint8),
        rng.integers(0, 10, count),
        np.arange(count),
    )


def bare_sgd(model: nn.Module, data: Tensors, settings: Block) -> None:
    """Trains a network for one epoch of SGD.

    Args:
        model: The network.
        data: Pixels [n, channels, height, width] and labels [n].
        settings: The algorithm's settings; batch and learning rate are read.
    """
    pixels, labels = data
    optimiser = torch.optim.SGD(model.parameters(), lr=settings.learning_rate)
    for rows in batches(len(labels), settings.batch, torch.Generator().manual_seed(0)):
        loss = F.cross_entropy(model(pixels[rows]), labels[rows])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()


def bare_maml(model: nn.Module, data: Tensors, settings: Block) -> None:
    """Takes MAML's inner steps and the gradient of its query.

    Args:
        model: The network.
        data: Pixels [n, channels, height, width] and labels [n].
        settings: PPPFL's settings; the inner loop's are read.
    """
    pixels, labels = data
    learner = l2l.algorithms.MAML(
        model, lr=settings.inner_learning_rate, first_order=settings.order == "first"
    ).clone()
    for step in range(settings.inner_steps):
        rows = slice(step * settings.batch, (step + 1) * settings.batch)
        learner.adapt(F.cross_entropy(learner(pixels[rows]), labels[rows]))
    loss = F.cross_entropy(learner(pixels[-settings.batch :]), labels[-settings.batch :])
    torch.autograd.grad(loss, list(model.parameters()))


def seconds(work: Callable[[], object]) -> float:
    """Returns the CPU-seconds that a piece of work takes in this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


class Round:
    """Makes one round of an algorithm over all clients, each time from the same start."""

    def __init__(self, name: str, settings: Block, task: Task):
        self.module = base.load(name)
        self.engine = in_process(self.module, task, settings)
        self.server = self.module.server(task, settings)

    def __call__(self) -> None:
        """Makes the round."""
        replies = self.engine.call(Payload(self.server.broadcast, {"round": 1}))
        self.module.server_step(self.server, replies)


def measured(name: str, settings: Block, bare: Callable, count: int, repeats: int) -> dict:
    """Measures the product's round and the bare loops in turn.

    Args:
        name: Name of the algorithm.
        settings: Its settings.
        bare: Its bare loop for one client.
        count: Number of images of each client.
        repeats: How often each is measured; the least CPU time counts.

    Returns:
        A line of the table.
    """
    data = {f"c{number}": images(count, number) for number in range(CLIENTS)}
    task = Task(data, BUILD, None, dict.fromkeys(data, 10.0), seed=0)
    product_round = Round(name, settings, task)
    clients = [(BUILD(), tensors(client_images)) for client_images in data.values()]

    def bare_loops() -> None:
        for model, client_tensors in clients:
            bare(model, client_tensors, settings)

    # The first call of each warms up.
    product_round()
    bare_loops()
    round_seconds = math.inf
    bare_seconds = math.inf
    for _ in range(repeats):
        round_seconds = min(round_seconds, seconds(product_round))
        bare_seconds = min(bare_seconds, seconds(bare_loops))
    return {
        "algorithm": name,
        "round_cpu_seconds": round_seconds,
        "bare_cpu_seconds": bare_seconds,
        KEY: round_seconds / bare_seconds,
    }


def main() -> None:
    """Measures all algorithms, prints and stores the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    params = config.load()
    bare_loops = dict.fromkeys(("fedavg", "fedprox", "fednova", "scaffold"), bare_sgd)
    bare_loops |= dict.fromkeys(("pppfl", "pppfl_paper"), bare_maml)
    rows = []
    for name, bare in bare_loops.items():
        settings = params.training("mnist", methods.block(name))
        rows.append(measured(name, settings, bare, params.profiles["mnist"].images, repeats))
    test = images(TEST, 9)
    model = BUILD()
    scored = min(seconds(lambda: scores(model, test)) for _ in range(3)) * SCORED
    for row in rows:
        row["evaluation_share"] = scored / (scored + ROUNDS * row["round_cpu_seconds"])
    publish("federated_round", rows, **{KEY: max(row[KEY] for row in rows)})


if __name__ == "__main__":
    main()
