"""What one generator step costs with 800 teachers: the ensemble here against a plain loop, in CPU time.

    python -m benchmarks.teacher_step             # a few minutes on one core

The loop is the reference's way (DataLens' code): a network, an Adam and a batch per teacher, label planes in full, the
generator called anew whenever a teacher asks for fakes, and each loss evaluated once more after its update. The ratios
are to that; beside them stand the ratios to the same loop without that last habit. Both ways do 2 updates of every
teacher and then ask each for its image gradients; ours also turns them into votes and adds these.

All variants take turns on one thread; process CPU time, the least of several rounds. Each is measured on a sample of
teachers and scaled to 800: exact for a loop, and for ours, where every block costs the same.
"""

import argparse
import resource
import subprocess
import sys
import time
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.common import publish
from models.generator import PaperGenerator
from models.teachers import TEACHERS, LabelledConv, same
from pipelines.datasets.labelled_images import Images
from pipelines.synthesis.datalens import votes
from pipelines.synthesis.datalens.ensemble import SIZES, Ensemble, Recipe

TEACHERS_ASKED, BATCH, UPDATES = 800, 15, 2
SHAPE, CLASSES, HIDDEN = (28, 28, 1), 10, 32
RECORDS = 15  # per teacher
BALLOT = partial(
    votes.vote, top_k=200, clip=1e-5, stochastic=True
)  # k, c: DataLens, MNIST, epsilon 1
NETWORKS = ("paper", "compact")
REFERENCE, PLAIN = "reference's loop", "loop, losses evaluated once"


class Loop:
    """The reference's way, for `count` teachers."""

    def __init__(
        self, network: str, generator: PaperGenerator, count: int, *, reevaluated: bool = False
    ):
        self.generator, self.reevaluated = generator, reevaluated
        self.teachers = [TEACHERS[network](SHAPE, CLASSES, HIDDEN) for _ in range(count)]
        for parameter in (
            parameter for teacher in self.teachers for parameter in teacher.parameters()
        ):
            torch.nn.init.normal_(parameter, std=0.02)
        self.optimisers = [
            torch.optim.Adam(teacher.parameters(), lr=1e-3, betas=(0.5, 0.999))
            for teacher in self.teachers
        ]
        data = records(count)
        self.images = (
            torch.from_numpy(data.pixels).permute(0, 3, 1, 2).unflatten(0, (count, RECORDS))
        )
        self.labels = torch.from_numpy(data.labels).unflatten(0, (count, RECORDS))

    def step(self, z: torch.Tensor, labels: torch.Tensor) -> None:
        for teacher, optimiser, images, own in zip(
            self.teachers, self.optimisers, self.images, self.labels
        ):
            for _ in range(UPDATES):
                optimiser.zero_grad()
                self._loss(teacher, images, own, z, labels).backward()
                optimiser.step()
                if self.reevaluated:
                    with torch.no_grad():
                        self._loss(teacher, images, own, z, labels)
            fakes = self._fakes(z, labels).requires_grad_()
            torch.autograd.grad(bce(teacher(fakes, labels), 1.0), fakes)

    def _loss(self, teacher, images, own, z, labels) -> torch.Tensor:
        return bce(teacher(images, own), 1.0) + bce(teacher(self._fakes(z, labels), labels), 0.0)

    def _fakes(self, z, labels) -> torch.Tensor:
        with torch.no_grad():
            return self.generator(z, labels)


class Ours:
    """Blocks of stacked teachers; the generator is called once, and its time is counted apart (`once`)."""

    def __init__(self, network: str, count: int):
        recipe = Recipe(network, SHAPE, CLASSES, HIDDEN, count=count, learning_rate=1e-3, seed=0)
        self.ensemble = Ensemble(
            recipe, records(count), np.repeat(np.arange(count), RECORDS), BALLOT
        )

    def step(self, fakes: torch.Tensor, labels: torch.Tensor) -> None:
        self.ensemble.poll(fakes.numpy(), labels.numpy(), UPDATES)


def bce(logits: torch.Tensor, target: float) -> torch.Tensor:
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))


def records(count: int) -> Images:
    rng = np.random.default_rng(0)
    total = count * RECORDS
    images = rng.integers(0, 256, (total, *SHAPE)).astype(np.uint8)
    return Images(images, rng.integers(0, CLASSES, total), np.arange(total))


def flops(network: str) -> float:
    """Needed per teacher and generator step: products and sums of the layers without label planes, each update a
    forward and two backward passes over real and fake images (no gradient of the images), then one forward pass and
    the gradient of the images over the fakes."""
    forward, sides = [], SHAPE[:2]
    for layer in TEACHERS[network](SHAPE, CLASSES, HIDDEN).layers:
        pixels = 1
        if isinstance(layer, LabelledConv):
            sides = [same(side, layer.weight.shape[1], layer.stride)[0] for side in sides]
            pixels = sides[0] * sides[1]
        forward.append(2 * pixels * layer.weight.numel())
    return BATCH * (UPDATES * 2 * (3 * sum(forward) - forward[0]) + 2 * sum(forward))


def cpu_seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def peak() -> float:
    """FLOP per CPU second of a large matrix product."""
    a = torch.rand(1536, 1536)
    return 2 * 1536**3 / cpu_seconds(lambda: a @ a)


def memory_gb(count: int) -> float:
    """Largest resident memory of a process that takes one step with `count` compact teachers, Python included."""
    code = f"from benchmarks import teacher_step; teacher_step.one_step_and_report({count})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def one_step_and_report(count: int) -> None:
    torch.set_num_threads(1)
    Ours("compact", count).step(torch.rand(BATCH, 1, 28, 28), torch.arange(BATCH) % CLASSES)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory-teachers", type=int, default=4000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    generator = PaperGenerator(shape=SHAPE, classes=CLASSES, latent=50)
    z, labels = generator.draw(BATCH, torch.Generator().manual_seed(0))
    with torch.no_grad():
        fakes = generator(z, labels)
    sampled = {"loop": 4, "ours": 2 * SIZES["cpu"]}
    variants, teachers = {}, {}
    for network in NETWORKS:
        loops = {REFERENCE: True, PLAIN: False}
        for name, reevaluated in loops.items():
            loop = Loop(network, generator, sampled["loop"], reevaluated=reevaluated)
            variants[network, name], teachers[network, name] = (
                partial(loop.step, z, labels),
                sampled["loop"],
            )
        ours = Ours(network, sampled["ours"])
        variants[network, "ours"], teachers[network, "ours"] = (
            partial(ours.step, fakes, labels),
            sampled["ours"],
        )
    times = {key: [] for key in (*variants, "once")}
    peaks = []
    for _ in range(arguments.rounds + 1):
        for key, work in variants.items():
            times[key].append(cpu_seconds(work))
        times["once"].append(cpu_seconds(partial(loop._fakes, z, labels)))
        peaks.append(peak())
    once = min(times["once"][1:])  # the first round warms up
    each = {key: min(times[key][1:]) / teachers[key] for key in variants}
    whole = {
        key: each[key] * TEACHERS_ASKED + (once if key[1] == "ours" else 0) for key in variants
    }
    ratios = {key: whole[key[0], REFERENCE] / whole[key] for key in variants}
    plain = {name: whole[name, PLAIN] / whole[name, "ours"] for name in NETWORKS}
    rows = [
        {
            "networks": network,
            "way": way,
            "cpu_seconds_per_step": whole[network, way],
            "ms_per_teacher": 1e3 * each[network, way],
            "ratio": ratios[network, way],
            "teachers_measured": teachers[network, way],
        }
        for network, way in variants
    ]
    best = max(peaks)
    publish(
        "teacher_step",
        rows,
        cpu_ratio_paper_networks=ratios["paper", "ours"],
        cpu_ratio_compact=ratios["compact", "ours"],
        cpu_ratio_paper_networks_to_plain_loop=plain["paper"],
        cpu_ratio_compact_to_plain_loop=plain["compact"],
        fraction_of_peak=flops("paper") / each["paper", "ours"] / best,
        fraction_of_peak_compact=flops("compact") / each["compact", "ours"] / best,
        memory_gb_4000_teachers=memory_gb(arguments.memory_teachers),
        peak_gflops_per_core=best / 1e9,
        mflop_per_teacher={network: flops(network) / 1e6 for network in NETWORKS},
        generator_ms=1e3 * once,
        teachers=TEACHERS_ASKED,
        batch=BATCH,
        rounds=arguments.rounds,
        memory_of_teachers=arguments.memory_teachers,
        scaled="each way is measured on teachers_measured teachers and scaled to all of them, linearly",
    )


if __name__ == "__main__":
    main()
