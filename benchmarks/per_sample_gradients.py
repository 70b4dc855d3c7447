"""Times clipped sums of per-record gradients, ours against Opacus, in CPU time on one thread.

    python -m benchmarks.per_sample_gradients          # some minutes on one core

All ways take turns on the same weights and lot, and the least time of each counts. Our networks
keep channels last, as `training.classifier` builds them. Opacus 1.6 gets another gradient from such
weights, so its networks keep torch's order.

* `hooks` is Opacus' GradSampleModule with its optimiser's clipping. It forms every record's
  gradient.
* `ghost` is Opacus' fast gradient clipping in two passes.
* A ratio above 1 means that ours is faster. In `ratio_to_hooks_in_torch_order` ours has torch's
  order, too.
* `round_over_gradients` is the time of rounds over that of clipped sums of equal lots. A round is
  one noisy step at each of ten clients of 6,000 records, with lots of 78 in the mean. It includes
  all that is sent, drawn, clipped, noised and accounted.
* `with_public_images` is the same for a server that has 2,000 public images. It scores each round's
  model on as many as all lots hold.
* `in_turn_over_together` is the time of one call per client's lot over that of one call for all
  clients. The first steps of a round in one process are one call.
"""

import argparse
import copy
import json
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from opacus import GradSampleModule
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from torch import nn

from benchmarks.common import RESULTS, show
from benchmarks.federated_round import seconds
from models import classifiers
from pipelines import config
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import dpsgd
from pipelines.federation.core.messages import Payload
from pipelines.federation.dp import dpsgd_server
from pipelines.federation.dp.public import Public
from pipelines.federation.inprocess import engine_of
from pipelines.files import write_text
from pipelines.privacy.noise import OsEntropy
from pipelines.privacy.per_sample import Lot, clipped, clipped_sum, scaled_sum, scaled_sums
from pipelines.training.tensors import state_of

# Computes a clipped sum: {layer: tensor}, or the tensors in the layers' order.
Way = Callable[[], dict[str, torch.Tensor] | list[torch.Tensor]]

NAME = "per_sample_gradients"
CLIP = 1.0
CLIENTS = 10
# Number of records of a client, and of its lot in the mean.
RECORDS = 6_000
LOT = 78
# Number of images of the server.
PUBLIC = 2_000
LAST = {"memory_format": torch.channels_last}
# {name/lot of each client: (a key of CASES, number of clients)}. The last two are those of digits.
TOGETHER = {
    "small28/8": ("small28/16", CLIENTS),
    "small28/16": ("small28/16", CLIENTS),
    "small28/26": ("small28/16", CLIENTS),
    "small28/78": ("small28/78", CLIENTS),
    "cnn28/16": ("cnn28/64", CLIENTS),
    "fedavg28/8": ("fedavg28/64", CLIENTS),
    "fedavg28/26": ("fedavg28/64", CLIENTS),
    "mlp8/20": ("mlp8/40", 5),
    "mlp8/40": ("mlp8/40", 5),
}
# {name/lot: (network, side, channels)}
CASES = {
    "small28/16": ("papernot", 28, 1),
    "small28/78": ("papernot", 28, 1),
    "small28/256": ("papernot", 28, 1),
    "cnn28/64": ("cnn", 28, 1),
    "cnn28/600": ("cnn", 28, 1),
    "cnn28/78": ("cnn", 28, 1),
    "mlp8/40": ("mlp", 8, 1),
    "mlp8/58": ("mlp", 8, 1),
    "fedavg28/64": ("fedavg_cnn", 28, 1),
    "fedavg32/64": ("fedavg_cnn", 32, 3),
    "abadi24/64": ("abadi", 32, 3),
}


def lot(count: int, side: int, channels: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns random images and labels.

    Args:
        count: Number of images.
        side: Height and width in pixels.
        channels: Number of channels.

    Returns:
        float32 [count, channels, side, side] in [0, 1) and int64 [count].
    """
    generator = torch.Generator().manual_seed(count)
    images = torch.rand(count, channels, side, side, generator=generator)
    return images, torch.randint(10, (count,), generator=generator)


def network(case: str, **order) -> nn.Module:
    """Returns the network of a case; order: LAST, or nothing for torch's order."""
    name, side, channels = CASES[case]
    return classifiers.build(name, shape=(side, side, channels), classes=10, seed=0).to(**order)


def hooks(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Way:
    """Returns a function that computes the clipped sum with Opacus' per-record gradients.

    Args:
        model: The network; a copy is used.
        images: The lot, float32 [n, channels, height, width].
        labels: Its labels, int64 [n].
    """
    wrapped = GradSampleModule(copy.deepcopy(model))
    inner = torch.optim.SGD(wrapped.parameters(), lr=1.0)
    optimiser = DPOptimizer(
        inner, noise_multiplier=0.0, max_grad_norm=CLIP, expected_batch_size=len(labels)
    )

    def run() -> list[torch.Tensor]:
        optimiser.zero_grad()
        F.cross_entropy(wrapped(images), labels).backward()
        optimiser.clip_and_accumulate()
        return [parameter.summed_grad for parameter in wrapped.parameters()]

    return run


def ghost(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Way:
    """Returns a function that computes the clipped sum with Opacus' ghost clipping.

    Args:
        model: The network; a copy is used.
        images: The lot, float32 [n, channels, height, width].
        labels: Its labels, int64 [n].
    """
    wrapped = GradSampleModuleFastGradientClipping(
        copy.deepcopy(model), max_grad_norm=CLIP, use_ghost_clipping=True, loss_reduction="sum"
    )
    inner = torch.optim.SGD(wrapped.parameters(), lr=1.0)
    optimiser = DPOptimizerFastGradientClipping(
        inner,
        noise_multiplier=0.0,
        max_grad_norm=CLIP,
        expected_batch_size=len(labels),
        loss_reduction="sum",
    )
    criterion = DPLossFastGradientClipping(
        wrapped, optimiser, nn.CrossEntropyLoss(reduction="sum"), "sum"
    )

    def run() -> list[torch.Tensor]:
        optimiser.zero_grad()
        criterion(wrapped(images), labels).backward()
        optimiser.accumulate()
        return [parameter.summed_grad for parameter in wrapped.parameters()]

    return run


def measured(case: str, repeats: int) -> dict:
    """Returns the line of a case: times in milliseconds, ratios, and how far the sums differ."""
    model = network(case)
    images, labels = lot(int(case.split("/")[1]), *CASES[case][1:])
    ways = {
        "ours": partial(clipped_sum, network(case, **LAST), images, labels, CLIP),
        "ours_in_torch_order": partial(clipped_sum, model, images, labels, CLIP),
        "hooks": hooks(model, images, labels),
        "ghost": ghost(model, images, labels),
    }
    difference = _difference(ways)
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(repeats):
        for name, way in ways.items():
            least[name] = min(least[name], seconds(way))
    milliseconds = {}
    for name, value in least.items():
        milliseconds[f"{name}_ms"] = 1000 * value
    return {
        "case": case,
        **milliseconds,
        "ratio_to_opacus_hooks": least["hooks"] / least["ours"],
        "ratio_to_opacus_ghost": least["ghost"] / least["ours"],
        "ratio_to_hooks_in_torch_order": least["hooks"] / least["ours_in_torch_order"],
        "relative_difference": difference,
    }


def in_turn_over_together(case: str, repeats: int) -> float:
    """Returns the time of one call per client over that of one call for all clients."""
    like, clients = TOGETHER[case]
    model = network(like, **LAST)
    size = int(case.split("/")[1])
    images, labels = lot(clients * size, *CASES[like][1:])
    lots = []
    for client_images, client_labels in zip(images.split(size), labels.split(size)):
        lots.append(Lot(client_images, client_labels, clipped(CLIP)))

    def in_turn() -> None:
        for client_lot in lots:
            scaled_sum(model, client_lot)

    in_turn_seconds = float("inf")
    together_seconds = float("inf")
    for _ in range(repeats):
        in_turn_seconds = min(in_turn_seconds, seconds(in_turn))
        together_seconds = min(together_seconds, seconds(partial(scaled_sums, model, lots)))
    return in_turn_seconds / together_seconds


def round_over_gradients(params: config.Params, repeats: int, public: int = 0) -> float:
    """Returns the time of rounds over that of clipped sums of lots drawn at the same rate.

    Args:
        params: The parameters of params.yaml.
        repeats: Number of rounds after the first, which warms up.
        public: Number of public images of the server.
    """
    changes = {
        "local_steps": 1,
        "rounds": repeats + 1,
        "sampling_rate": LOT / RECORDS,
        "expected_lot": float(LOT),
    }
    settings = params.dp_baselines.dpsgd.model_copy(update=changes)
    build = partial(network, "small28/78", **LAST)
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (RECORDS, 28, 28, 1)).astype(np.uint8)
    data = Images(pixels, rng.integers(0, 10, RECORDS), np.arange(RECORDS))
    public_validation = Public(build(), data[np.arange(public)]) if public else None
    clients = {}
    for number in range(CLIENTS):
        client_account = dpsgd.new_account(2.0, 1e-5, settings)
        clients[f"c{number}"] = dpsgd.Client(build(), data, client_account, OsEntropy())
    engine = engine_of(dpsgd, clients, settings)
    state = dpsgd_server.start(state_of(build()), settings, public_validation, CLIENTS)
    model = build()
    images, labels = lot(RECORDS, 28, 1)

    def make_round() -> None:
        dpsgd_server.step(state, engine.call(Payload(state.broadcast, state.instructions)))

    round_seconds = []
    gradient_seconds = []
    for _ in range(repeats + 1):
        round_seconds.append(seconds(make_round))
        lots = []
        for size in rng.binomial(RECORDS, LOT / RECORDS, CLIENTS):
            lots.append(Lot(images[:size].clone(), labels[:size], clipped(CLIP)))
        gradient_seconds.append(seconds(partial(scaled_sums, model, lots)))
    return sum(round_seconds[1:]) / sum(gradient_seconds[1:])


def _difference(ways: dict[str, Way]) -> float:
    """Returns the largest relative difference of a layer's sum between ours and another way."""
    sums = {}
    for name, way in ways.items():
        result = way()
        sums[name] = list(result.values()) if isinstance(result, dict) else result
    difference = 0.0
    for other in sums.values():
        for ours, theirs in zip(sums["ours"], other):
            difference = max(difference, (ours - theirs).norm().item() / theirs.norm().item())
    return difference


def main() -> None:
    """Measures all cases, prints and stores the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = [measured(case, arguments.repeats) for case in arguments.cases]
    params = config.load()
    ratios = {
        "round_over_gradients": round_over_gradients(params, arguments.repeats),
        "with_public_images": round_over_gradients(params, arguments.repeats, PUBLIC),
        "in_turn_over_together": {},
    }
    for case in TOGETHER:
        ratios["in_turn_over_together"][case] = in_turn_over_together(case, arguments.repeats)
    show(rows, **ratios)
    content = {**ratios, "cases": {row.pop("case"): row for row in rows}}
    write_text(RESULTS / f"{NAME}.json", json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
