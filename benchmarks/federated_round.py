"""What a round of a federation costs beside the bare training loops in it, in CPU time.

    python -m benchmarks.federated_round          # about five minutes on one core

Five clients with as many images as MNIST's profile says, the MNIST CNN, one local epoch (PPPFL: its inner steps and
query). Bare is the loop that a tutorial would write: the same network, batches of the same size, the same optimiser or
learn2learn call, records already tensors, and nothing sent, kept or summed. Both take turns on one thread; process CPU
time, least of several rounds. `evaluation_share`: the shared model of every fifth round scored on the 10,000 images of
a test set, as a share of 30 rounds and of itself: of what a stage does besides, fine-tuning, nothing is counted.
"""

import argparse
import time
from functools import partial

import learn2learn as l2l
import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.common import publish
from models import classifiers
from pipelines import config, methods
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.federation.core import task as tasks
from pipelines.federation.core.messages import Payload
from pipelines.federation.core.task import Task
from pipelines.training.classifier import batches
from pipelines.training.tensors import tensors

CLIENTS, TEST = 5, 10_000
ROUNDS, SCORED = 30, 6
KEY = "cpu_ratio_over_bare_training"
BUILD = partial(classifiers.build, "cnn", shape=(28, 28, 1), classes=10, seed=0)


def images(count: int, seed: int) -> Images:
    rng = np.random.default_rng(seed)
    return Images(
        rng.integers(0, 256, (count, 28, 28, 1)).astype(np.uint8),
        rng.integers(0, 10, count),
        np.arange(count),
    )


def bare_sgd(model, data, settings) -> None:
    pixels, labels = data
    optimiser = torch.optim.SGD(model.parameters(), lr=settings.learning_rate)
    for rows in batches(len(labels), settings.batch, torch.Generator().manual_seed(0)):
        loss = F.cross_entropy(model(pixels[rows]), labels[rows])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()


def bare_maml(model, data, settings) -> None:
    pixels, labels = data
    learner = l2l.algorithms.MAML(
        model, lr=settings.inner_learning_rate, first_order=settings.order == "first"
    ).clone()
    for step in range(settings.inner_steps):
        rows = slice(step * settings.batch, (step + 1) * settings.batch)
        learner.adapt(F.cross_entropy(learner(pixels[rows]), labels[rows]))
    loss = F.cross_entropy(learner(pixels[-settings.batch :]), labels[-settings.batch :])
    torch.autograd.grad(loss, list(model.parameters()))


def seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


class Round:
    """One round of an algorithm over all clients, again and again from the same start."""

    def __init__(self, name: str, settings, task: Task):
        self.module = tasks.algorithm(methods.module(name))
        self.engine = tasks.in_process(self.module, task, settings, tasks.extra(self.module, task))
        self.server = self.module.server(task, settings)

    def __call__(self) -> None:
        replies = self.engine.call(Payload(self.server.sent, {"round": 1}))
        self.module.server_step(self.server, replies)


def measured(name: str, settings, bare, count: int, repeats: int) -> dict:
    """Ours and the bare loops in turn; the least CPU time of each."""
    data = {f"c{number}": images(count, number) for number in range(CLIENTS)}
    task = Task(data, BUILD, None, dict.fromkeys(data, 10.0), seed=0)
    ours, held = Round(name, settings, task), [(BUILD(), tensors(own)) for own in data.values()]

    def loops() -> None:
        for model, data in held:
            bare(model, data, settings)

    for work in (ours, loops):
        work()  # warm
    pairs = [(seconds(ours), seconds(loops)) for _ in range(repeats)]
    whole, least = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    return {
        "algorithm": name,
        "round_cpu_seconds": whole,
        "bare_cpu_seconds": least,
        KEY: whole / least,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    params = config.load()
    ways = dict.fromkeys(("fedavg", "fedprox", "fednova", "scaffold"), bare_sgd)
    ways |= dict.fromkeys(("pppfl", "pppfl_paper"), bare_maml)
    rows = []
    for name, bare in ways.items():
        settings = params.training("mnist", methods.block(name))
        rows.append(measured(name, settings, bare, params.profiles["mnist"].images, repeats))
    test, model = images(TEST, 9), BUILD()
    scored = min(seconds(lambda: scores(model, test)) for _ in range(3)) * SCORED
    for row in rows:
        row["evaluation_share"] = scored / (scored + ROUNDS * row["round_cpu_seconds"])
    publish("federated_round", rows, **{KEY: max(row[KEY] for row in rows)})


if __name__ == "__main__":
    main()
