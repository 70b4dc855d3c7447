"""Measures one generator step with 800 teachers: the ensemble here against a plain loop.

    python -m benchmarks.teacher_step             # a few minutes on one core

The loop is the reference's way (DataLens' code). It has a network, an Adam and a batch for each
teacher, and label planes in full. It calls the generator again whenever a teacher needs fakes, and
evaluates each loss once more after its update. The ratios are to this loop. Beside them stand the
ratios to the same loop without the last evaluation.

Both ways do 2 updates of every teacher and then compute its image gradients. Ours also turns them
into votes and adds these. All variants take turns on one thread, and the least CPU time of several
rounds counts. Each variant is measured on a sample of teachers and scaled to 800. The scaling is
exact for a loop, and for ours, where every block costs the same.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
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

# Number of teachers to which the times are scaled.
TEACHER_COUNT = 800
BATCH = 15
# Number of updates of each teacher in a generator step.
UPDATES = 2
SHAPE = (28, 28, 1)
CLASSES = 10
HIDDEN = 32
# Number of records of each teacher.
RECORDS = 15
# DataLens' k and c on MNIST at epsilon 1.
BALLOT = partial(votes.vote, top_k=200, clip=1e-5, stochastic=True)
NETWORKS = ("paper", "compact")
# Names of the two loops, and whether a loss is evaluated again after its update.
REFERENCE = "reference's loop"
PLAIN = "loop, losses evaluated once"
LOOPS = {REFERENCE: True, PLAIN: False}
# Number of teachers on which each way is measured.
LOOP_SAMPLE = 4
OURS_SAMPLE = 2 * SIZES["cpu"]

# (network, name of the way)
Key = tuple[str, str]


class Loop:
    """Trains `count` teachers one after the other, as the reference does."""

    def __init__(
        self, network: str, generator: PaperGenerator, count: int, *, reevaluated: bool = False
    ):
        self.generator = generator
        self.reevaluated = reevaluated
        self.teachers = []
        self.optimisers = []
        for _ in range(count):
            teacher = TEACHERS[network](SHAPE, CLASSES, HIDDEN)
            for parameter in teacher.parameters():
                torch.nn.init.normal_(parameter, std=0.02)
            self.teachers.append(teacher)
            optimiser = torch.optim.Adam(teacher.parameters(), lr=1e-3, betas=(0.5, 0.999))
            self.optimisers.append(optimiser)
        data = records(count)
        self.images = (
            torch.from_numpy(data.pixels).permute(0, 3, 1, 2).unflatten(0, (count, RECORDS))
        )
        self.labels = torch.from_numpy(data.labels).unflatten(0, (count, RECORDS))

    def step(self, z: torch.Tensor, labels: torch.Tensor) -> None:
        """Does the teachers' part of one generator step.

        Args:
            z: Latent vectors of the fakes, [BATCH, latent].
            labels: Labels of the fakes, int64 [BATCH].
        """
        for teacher, optimiser, images, image_labels in zip(
            self.teachers, self.optimisers, self.images, self.labels
        ):
            for _ in range(UPDATES):
                optimiser.zero_grad()
                self._loss(teacher, images, image_labels, z, labels).backward()
                optimiser.step()
                if self.reevaluated:
                    with torch.no_grad():
                        self._loss(teacher, images, image_labels, z, labels)
            fakes = self.fakes(z, labels).requires_grad_()
            torch.autograd.grad(bce(teacher(fakes, labels), 1.0), fakes)

    def fakes(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Calls the generator."""
        with torch.no_grad():
            return self.generator(z, labels)

    def _loss(
        self,
        teacher: torch.nn.Module,
        images: torch.Tensor,
        image_labels: torch.Tensor,
        z: torch.Tensor,
        labels: torch.Tensor,
    ) -> torch.Tensor:
        """Returns a teacher's loss on its images and on fakes."""
        real_loss = bce(teacher(images, image_labels), 1.0)
        return real_loss + bce(teacher(self.fakes(z, labels), labels), 0.0)


class Ours:
    """Trains blocks of stacked teachers.

    The generator is called once for all of them, and its time is measured apart.
    """

    def __init__(self, network: str, count: int):
        recipe = Recipe(network, SHAPE, CLASSES, HIDDEN, count=count, learning_rate=1e-3, seed=0)
        owners = np.repeat(np.arange(count), RECORDS)
        self.ensemble = Ensemble(recipe, records(count), owners, BALLOT)

    def step(self, fakes: torch.Tensor, labels: torch.Tensor) -> None:
        """Does the teachers' part of one generator step.

        Args:
            fakes: The generator's images, [BATCH, channels, height, width].
            labels: Their labels, int64 [BATCH].
        """
        self.ensemble.poll(fakes.numpy(), labels.numpy(), UPDATES)


def bce(logits: torch.Tensor, target: float) -> torch.Tensor:
    """Returns the binary cross-entropy of logits against one target."""
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))


def records(count: int) -> Images:
    """Returns RECORDS images of noise for each of `count` teachers."""
    rng = np.random.default_rng(0)
    total = count * RECORDS
    images = rng.integers(0, 256, (total, *SHAPE)).astype(np.uint8)
    return Images(images, rng.integers(0, CLASSES, total), np.arange(total))


def flops(network: str) -> float:
    """Returns the floating-point operations that a teacher needs in a generator step.

    These are the products and sums of the layers without label planes. Each update is a forward and
    two backward passes over real and fake images, without a gradient of the images. Then follow one
    forward pass and the gradient of the images over the fakes.
    """
    forward = []
    sides = SHAPE[:2]
    for layer in TEACHERS[network](SHAPE, CLASSES, HIDDEN).layers:
        pixels = 1
        if isinstance(layer, LabelledConv):
            sides = [same(side, layer.weight.shape[1], layer.stride)[0] for side in sides]
            pixels = sides[0] * sides[1]
        forward.append(2 * pixels * layer.weight.numel())
    return BATCH * (UPDATES * 2 * (3 * sum(forward) - forward[0]) + 2 * sum(forward))


def cpu_seconds(work: Callable[[], object]) -> float:
    """Returns the CPU-seconds that a piece of work takes in this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def peak() -> float:
    """Measures the FLOP per CPU-second of a large matrix product."""
    a = torch.rand(1536, 1536)
    return 2 * 1536**3 / cpu_seconds(lambda: a @ a)


def memory_gb(count: int) -> float:
    """Measures the largest resident memory of a process that takes one step, in GiB.

    The step has `count` compact teachers. Python's own memory is included.
    """
    code = f"from benchmarks import teacher_step; teacher_step.one_step_and_report({count})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def one_step_and_report(count: int) -> None:
    """Takes one step and prints the memory of this process; `memory_gb` calls it."""
    torch.set_num_threads(1)
    Ours("compact", count).step(torch.rand(BATCH, 1, 28, 28), torch.arange(BATCH) % CLASSES)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def main() -> None:
    """Measures all variants, prints and stores the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory-teachers", type=int, default=4000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    each, once, peak_flops = _measured(arguments.rounds)
    whole = {}
    for network, way in each:
        whole[network, way] = each[network, way] * TEACHER_COUNT + (once if way == "ours" else 0)
    rows = []
    for network, way in each:
        row = {"networks": network, "way": way, "cpu_seconds_per_step": whole[network, way]}
        row["ms_per_teacher"] = 1e3 * each[network, way]
        row["ratio"] = whole[network, REFERENCE] / whole[network, way]
        row["teachers_measured"] = OURS_SAMPLE if way == "ours" else LOOP_SAMPLE
        rows.append(row)
    publish(
        "teacher_step",
        rows,
        cpu_ratio_paper_networks=whole["paper", REFERENCE] / whole["paper", "ours"],
        cpu_ratio_compact=whole["compact", REFERENCE] / whole["compact", "ours"],
        cpu_ratio_paper_networks_to_plain_loop=whole["paper", PLAIN] / whole["paper", "ours"],
        cpu_ratio_compact_to_plain_loop=whole["compact", PLAIN] / whole["compact", "ours"],
        fraction_of_peak=flops("paper") / each["paper", "ours"] / peak_flops,
        fraction_of_peak_compact=flops("compact") / each["compact", "ours"] / peak_flops,
        memory_gb_4000_teachers=memory_gb(arguments.memory_teachers),
        peak_gflops_per_core=peak_flops / 1e9,
        mflop_per_teacher={network: flops(network) / 1e6 for network in NETWORKS},
        generator_ms=1e3 * once,
        teachers=TEACHER_COUNT,
        batch=BATCH,
        rounds=arguments.rounds,
        memory_of_teachers=arguments.memory_teachers,
        scaled="each way is measured on teachers_measured teachers "
        "and scaled to all of them, linearly",
    )


def _measured(rounds: int) -> tuple[dict[Key, float], float, float]:
    """Measures all variants in turn; the least time counts.

    Returns:
        {(network, way): CPU-seconds per teacher}, the CPU-seconds of the generator alone, and the
        largest FLOP per CPU-second of a matrix product.
    """
    generator = PaperGenerator(shape=SHAPE, classes=CLASSES, latent=50)
    z, labels = generator.draw(BATCH, torch.Generator().manual_seed(0))
    with torch.no_grad():
        fakes = generator(z, labels)
    steps = {}
    for network in NETWORKS:
        for way, reevaluated in LOOPS.items():
            loop = Loop(network, generator, LOOP_SAMPLE, reevaluated=reevaluated)
            steps[network, way] = partial(loop.step, z, labels)
        steps[network, "ours"] = partial(Ours(network, OURS_SAMPLE).step, fakes, labels)
    least = dict.fromkeys(steps, float("inf"))
    once = float("inf")
    peak_flops = 0.0
    for number in range(rounds + 1):
        times = {key: cpu_seconds(step) for key, step in steps.items()}
        generator_seconds = cpu_seconds(partial(loop.fakes, z, labels))
        peak_flops = max(peak_flops, peak())
        # The first round warms up.
        if number:
            least = {key: min(least[key], times[key]) for key in steps}
            once = min(once, generator_seconds)
    each = {}
    for network, way in steps:
        sample = OURS_SAMPLE if way == "ours" else LOOP_SAMPLE
        each[network, way] = least[network, way] / sample
    return each, once, peak_flops


if __name__ == "__main__":
    main()
