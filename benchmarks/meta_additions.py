"""Says what each addition to PPPFL earns: with it left out, and with it alone.

    python -m benchmarks.meta_additions --datasets digits                    # ten draws, a minute
    python -m benchmarks.meta_additions --datasets mnist --draws 2           # half an hour

Draws are development draws: training images stand for the global test set, and no test image is
read (`client_draws`). `handed out` is the shared model as it is, on these images. `own` and
`everybody` are newcomers with 8 labels after the recipe `replay`, by both read-outs. `own plain` and
`everybody plain` are the same after five SGD steps at the inner rate that was meta-trained, and
nothing else. Rows that are stored under the same settings are not measured again.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks import client_draws, personalisation
from benchmarks.client_draws import NEWCOMERS, USUAL, ClientDraw
from benchmarks.common import cells, cpu_seconds, has, keep, kept, show
from benchmarks.personalisation import DEVELOPMENT_SEED
from pipelines import config
from pipelines.config.training import Meta
from pipelines.datasets.labelled_images import Images
from pipelines.evaluation.scoring import scores
from pipelines.federation.inprocess import federate
from pipelines.training.tensors import State, tensors, with_state

NAME = "meta_additions"
LABELS = "8"
# What each row is about, as a cell of `benchmarks.personalisation`.
CELL = {"regime": USUAL, "start": "pppfl", "recipe": "replay", "labels": LABELS}
# Changes to the shipped settings of `meta`, which has all additions.
NONE = {"warm_start": None, "few_labels": None, "handed_out_weight": 0.0}
WARM_START = "warm start"
ADDITIONS = {
    WARM_START: "warm_start",
    "few labels": "few_labels",
    "handed out": "handed_out_weight",
}
# More rounds from random weights, where the paper's 30 leave a model at chance.
LONG = 1000


def variants(shipped: Meta) -> dict[str, Meta]:
    """Returns the settings of each variant.

    Args:
        shipped: The settings of `meta`.
    """
    settings = {"shipped": shipped}
    for name, field in ADDITIONS.items():
        settings[f"without {name}"] = shipped.model_copy(update={field: NONE[field]})
    bare = shipped.model_copy(update=NONE)
    settings["none of them"] = bare
    for name, field in ADDITIONS.items():
        settings[f"{name} alone"] = bare.model_copy(update={field: getattr(shipped, field)})
    settings["warm start, one round"] = shipped.model_copy(update={"rounds": 1})
    cold = shipped.model_copy(update={"warm_start": None, "rounds": LONG})
    settings[f"without warm start, {LONG} rounds"] = cold
    return settings


def measured(clients: ClientDraw, settings: Meta) -> dict[str, float]:
    """Trains the shared model of one draw and scores what it is worth.

    Args:
        clients: The draw.
        settings: PPPFL's.
    """
    began = cpu_seconds()
    initial = federate("pppfl", clients.task, settings).models[-1]
    seconds = cpu_seconds() - began
    figures = {"own": [], "everybody": [], "own plain": [], "everybody plain": []}
    for client in NEWCOMERS:
        records = personalisation.labelled(clients, client, LABELS)
        key = {"client": client, "labels": LABELS, "recipe": "replay"}
        personal = personalisation.tuned(clients, initial, key, records, clients.pool, {})
        accuracies = personalisation.scored(clients, personal, client)
        figures["own"].append(accuracies["own"])
        figures["everybody"].append(accuracies["global"])
        model = inner_loop(clients, initial, records, settings)
        figures["own plain"].append(scores(model, clients.own_test(client))["accuracy"])
        figures["everybody plain"].append(scores(model, clients.everyone)["accuracy"])
    model = with_state(clients.build(), initial)
    handed_out = scores(model, clients.everyone)["accuracy"]
    means = {name: float(np.mean(values)) for name, values in figures.items()}
    return {"handed out": handed_out, **means, "cpu_seconds": seconds}


def inner_loop(clients: ClientDraw, initial: State, records: Images, settings: Meta) -> nn.Module:
    """Returns the model after the inner loop that was meta-trained, on all labelled records.

    Args:
        clients: The draw.
        initial: The weights handed out.
        records: The labelled records.
        settings: PPPFL's inner rate and steps.
    """
    model = with_state(clients.build(), initial)
    images, labels = tensors(records, "cpu")
    optimiser = torch.optim.SGD(model.parameters(), lr=settings.inner_learning_rate)
    for _ in range(settings.inner_steps):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return model


def summary(rows: list[dict]) -> list[dict]:
    """Returns a line per data set and variant: means over draws, and differences to `shipped`."""
    lines = []
    for dataset, variant in dict.fromkeys((row["dataset"], row["variant"]) for row in rows):
        group = [row for row in rows if has(row, {"dataset": dataset, "variant": variant})]
        shipped = {}
        for row in rows:
            if has(row, {"dataset": dataset, "variant": "shipped"}):
                shipped[row["draw"]] = row
        line = {"dataset": dataset, "variant": variant, "draws": len(group)}
        for figure in ("handed out", "own", "everybody", "own plain", "everybody plain"):
            line[figure] = float(np.mean([row[figure] for row in group]))
        for figure in ("own", "everybody"):
            paired = [row[figure] - shipped[row["draw"]][figure] for row in group]
            line[f"{figure} less shipped"] = float(np.mean(paired))
            line[f"{figure} deviation"] = float(np.std(paired, ddof=1)) if paired[1:] else None
        line["cpu_seconds"] = float(np.mean([row["cpu_seconds"] for row in group]))
        lines.append(line)
    return lines


def main() -> None:
    """Measures what is missing, prints and stores the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, default=Path("../shared/datasets"))
    parser.add_argument("--datasets", nargs="+", default=["digits"])
    parser.add_argument("--draws", type=int, default=10)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    params = config.load()
    rows = kept(NAME)
    seeds = [DEVELOPMENT_SEED + draw for draw in range(arguments.draws)]
    for seed, dataset, train, _ in cells(params, arguments.datasets, seeds, arguments.images):
        clients = None
        for name, settings in variants(params.training(dataset, "meta")).items():
            key = {"dataset": dataset, "variant": name, "draw": seed}
            cell = {**CELL, "dataset": dataset, "records": int(LABELS)}
            key["settings"] = personalisation.conditions(params, cell)
            if any(has(row, key) for row in rows):
                continue
            clients = clients or client_draws.draw(params, dataset, seed, train, None)
            rows = [row for row in rows if current(row, key)]
            rows.append({**key, **measured(clients, settings)})
            keep(NAME, rows, summary=summary(rows))
    show(summary(rows))


def current(row: dict, key: dict) -> bool:
    """Returns whether a row may stand beside the key's: of another data set, or of its settings."""
    if row["dataset"] != key["dataset"]:
        return True
    same = all(row[name] == key[name] for name in ("variant", "draw"))
    return row["settings"] == key["settings"] and not same


if __name__ == "__main__":
    main()
