"""Clipped sums of per-record gradients, ours against Opacus, in CPU time on one thread.

    python -m benchmarks.per_sample_gradients          # some minutes on one core

All ways take turns on the same weights and lot, and the least time of each counts. Our networks keep channels last, as
`training.classifier` builds them; Opacus 1.6 gets another gradient from such weights, so that its networks keep torch's
order, and `ratio_to_hooks_in_torch_order` has ours in it too. `hooks`: Opacus' GradSampleModule and its optimiser's
clipping, which form every record's gradient. `ghost`: its fast gradient clipping, two passes. Ratios above 1 mean that
we are faster. `round_over_gradients`: rounds of one noisy step at each of ten clients of 6,000 records (lots of 78 in
the mean), with all that is sent, drawn, clipped, noised and accounted, over clipped sums of such lots;
`with_public_images`: the same where the server has 2,000 of them, and scores each round's model on as many as all lots
hold. `in_turn_over_together`: the clipped sums of each client's lot in a call of its own, over those of all clients in
one call, which is how a round's first steps go in one process.
"""

import argparse
import copy
import json
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
from pipelines.federation.dp.accounts import account
from pipelines.federation.dp.public import Public
from pipelines.files import write_text
from pipelines.privacy.noise import OsEntropy
from pipelines.privacy.per_sample import Lot, clipped, clipped_sum, scaled_sum, scaled_sums
from pipelines.training.tensors import state_of

NAME = "per_sample_gradients"
CLIP = 1.0
CLIENTS, RECORDS, LOT = 10, 6_000, 78
PUBLIC = 2_000
LAST = {"memory_format": torch.channels_last}
# name/lot of each client: (as which case, clients); digits' are the last two
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
# name/lot: (network, side, channels)
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
    generator = torch.Generator().manual_seed(count)
    images = torch.rand(count, channels, side, side, generator=generator)
    return images, torch.randint(10, (count,), generator=generator)


def network(case: str, **order) -> nn.Module:
    name, side, channels = CASES[case]
    return classifiers.build(name, shape=(side, side, channels), classes=10, seed=0).to(**order)


def hooks(model: nn.Module, images: torch.Tensor, labels: torch.Tensor):
    """A function that leaves the clipped sum in `summed_grad`."""
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


def ghost(model: nn.Module, images: torch.Tensor, labels: torch.Tensor):
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
    model = network(case)
    images, labels = lot(int(case.split("/")[1]), *CASES[case][1:])
    ways = {
        "ours": partial(clipped_sum, network(case, **LAST), images, labels, CLIP),
        "ours_in_torch_order": partial(clipped_sum, model, images, labels, CLIP),
        "hooks": hooks(model, images, labels),
        "ghost": ghost(model, images, labels),
    }
    found = {name: way() for name, way in ways.items()}
    sums = {name: list(of.values()) if isinstance(of, dict) else of for name, of in found.items()}
    ours = sums.pop("ours")
    difference = max(
        (a - b).norm().item() / b.norm().item()
        for other in sums.values()
        for a, b in zip(ours, other)
    )
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(repeats):
        for name, way in ways.items():
            least[name] = min(least[name], seconds(way))
    return {
        "case": case,
        **{f"{name}_ms": 1000 * value for name, value in least.items()},
        "ratio_to_opacus_hooks": least["hooks"] / least["ours"],
        "ratio_to_opacus_ghost": least["ghost"] / least["ours"],
        "ratio_to_hooks_in_torch_order": least["hooks"] / least["ours_in_torch_order"],
        "relative_difference": difference,
    }


def in_turn_over_together(case: str, repeats: int) -> float:
    """Each client's sum in a call of its own, over those of all in one."""
    like, clients = TOGETHER[case]
    model, size = network(like, **LAST), int(case.split("/")[1])
    images, labels = lot(clients * size, *CASES[like][1:])
    lots = [Lot(*own, clipped(CLIP)) for own in zip(images.split(size), labels.split(size))]
    least = [float("inf")] * 2
    for _ in range(repeats):
        each = seconds(lambda: [scaled_sum(model, own) for own in lots])
        least = [
            min(pair) for pair in zip(least, (each, seconds(lambda: scaled_sums(model, lots))))
        ]
    return least[0] / least[1]


def round_over_gradients(params: config.Params, repeats: int, public: int = 0) -> float:
    """Rounds and as many gradients in turn, of lots drawn at the same rate, summed. public: the server's images."""
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
    watched = Public(build(), data[np.arange(public)]) if public else None
    clients = [
        dpsgd.Client(build(), data, account(2.0, 1e-5, settings), OsEntropy())
        for _ in range(CLIENTS)
    ]
    engine = dpsgd.engine({f"c{number}": client for number, client in enumerate(clients)})
    state = dpsgd_server.start(state_of(build()), settings, watched, CLIENTS)
    model, images, labels = build(), *lot(RECORDS, 28, 1)
    whole, gradients = [], []
    for _ in range(repeats + 1):
        whole.append(
            seconds(lambda: dpsgd_server.step(state, engine.call(Payload(state.sent, state.asked))))
        )
        sizes = rng.binomial(RECORDS, LOT / RECORDS, CLIENTS)
        lots = [Lot(images[:size].clone(), labels[:size], clipped(CLIP)) for size in sizes]
        gradients.append(seconds(partial(scaled_sums, model, lots)))
    return sum(whole[1:]) / sum(gradients[1:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = [measured(case, arguments.repeats) for case in arguments.cases]
    params = config.load()
    found = {
        "round_over_gradients": round_over_gradients(params, arguments.repeats),
        "with_public_images": round_over_gradients(params, arguments.repeats, PUBLIC),
        "in_turn_over_together": {
            case: in_turn_over_together(case, arguments.repeats) for case in TOGETHER
        },
    }
    show(rows, **found)
    found["cases"] = {row.pop("case"): row for row in rows}
    write_text(RESULTS / f"{NAME}.json", json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
