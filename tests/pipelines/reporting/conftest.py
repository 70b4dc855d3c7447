"""Makes a finished run of two clients by hand in an empty folder, so that every number is known."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from parameter_files import shipped_content

from pipelines import paths
from pipelines.config import Params
from pipelines.files import write_arrays, write_csv, write_json
from pipelines.privacy.statement import NOT_COVERED
from pipelines.reporting import client_page, collect, page, summary, views

ROOT = Path(__file__).resolve().parents[3]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
EPSILONS = {"a": 10.0, "b": 3.0}
SELECTED = {"round": 3, "mean_accuracy": 0.66, "worst": 0.44, "macro_f1": 0.6}
MUS = {10.0: 2.000371264116362, 3.0: 0.7193}


def statement(epsilon, mu, accountant="exact Gaussian DP", guarantee="formal"):
    return {
        "epsilon": epsilon,
        "delta": 1e-5,
        "mu": mu,
        "guarantee": guarantee,
        "unit": "record",
        "relation": "add or remove one record",
        "sampling": "none",
        "accountant": accountant,
        "not_covered": list(NOT_COVERED),
        "cost": _cost(mu, guarantee),
    }


def _cost(mu, guarantee):
    if guarantee != "formal":
        return {"kind": "none"}
    return (
        {"kind": "gaussian", "mu": mu}
        if mu
        else {"kind": "sampled_gaussian", "schedule": [[2.0, 0.2, 60]]}
    )


class Run:
    """Holds the folder; tests damage single files through `edit`."""

    def __init__(self, params):
        self.params = params

    def edit(self, path, change):
        content = json.loads(path.read_text())
        change(content)
        write_json(path, content)

    def void(self, client, generator):
        """Makes that client's release one without privacy."""
        nothing = {"epsilon": "inf", "mu": "inf", "guarantee": "none", "cost": {"kind": "none"}}
        self.edit(
            paths.synthetic("digits", client, generator) / "card.json",
            lambda card: card["privacy"].update(nothing),
        )

    def bound(self, method):
        """Makes that method one that trained on real records without privacy."""
        path = collect.method_folders(self.params, "digits")[method] / "results.json"
        self.edit(
            path,
            lambda results: results.update(epsilon_max="inf", guarantee="none", upper_bound=True),
        )

    def collapse(self, method):
        """Makes the results say that the method's shared model was found dead."""
        path = collect.method_folders(self.params, "digits")[method] / "results.json"
        self.edit(
            path, lambda results: results.update(health={"collapsed": True, "why": "It is dead."})
        )

    def read(self):
        return collect.read(self.params, "digits")

    def summary(self):
        return summary.build(self.params, "digits", self.read())

    def view(self):
        """Returns what the page shows of the run."""
        return views.of_dataset(self.params, self.read(), self.summary())

    def source(self):
        """Returns index.html."""
        return page.render(self.params, [self.view()])

    def client_source(self, client):
        """Returns the page of one client."""
        return client_page.render(client_page.facts(client, self.summary(), self.read()))


@pytest.fixture
def run(tmp_path, monkeypatch) -> Run:
    monkeypatch.chdir(tmp_path)
    content = shipped_content()
    content["clients"] = {"a": {"epsilon": EPSILONS["a"]}, "b": {"epsilon": EPSILONS["b"]}}
    content["partition"] |= {"clients": ["a", "b"], "small": None}
    content["synthesis"]["generators"] = ["datalens", "dp_moments"]
    content["baselines"]["algorithms"] = ["local", "random_init", "fedavg"]
    content["dp_baselines"]["algorithms"] = ["dpsgd"]
    content["prepare"]["public_fraction"] = 0.0
    content["new_clients"]["held_out"] = ["a", "b"]
    params = Params.model_validate(content)
    for client, epsilon in EPSILONS.items():
        for generator in params.synthesis.generators:
            _export(client, generator, epsilon)
    for index, (method, folder) in enumerate(collect.method_folders(params, "digits").items()):
        _method(
            method,
            folder,
            shift=index / 100,
            rounds=method.startswith(("pppfl", "fedavg", "dpsgd")),
        )
    for generator in params.synthesis.generators:
        _newcomers(generator)
    return Run(params)


def _newcomers(generator):
    """Writes a study with two clients, labels 8 and 16, and three draws.

    PPPFL is ahead of the untrained model, and level with FedAvg at 16.
    """
    ahead = {"pppfl": (0.3, 0.1), "fedavg": (0.2, 0.1), "random_init": (0.0, 0.0)}
    cells = []
    for algorithm in ahead:
        cells.append(_cell(algorithm, "a", labels=0, draw=0, accuracy=0.1))
        cells.append(_cell(algorithm, "b", labels=0, draw=0, accuracy=0.3))
    for algorithm, gains in ahead.items():
        for labels, gain in zip((8, 16), gains, strict=True):
            for client in "ab":
                for draw in (1, 2, 3):
                    accuracy = labels / 50 + gain + draw / 100
                    cells.append(_cell(algorithm, client, labels, draw, accuracy))
    private = {"epsilon_max": 10.0, "guarantee": "formal"}
    content = {
        "held_out": ["a", "b"],
        "algorithms": list(ahead),
        "labels": [8, 16, 64],
        "cells": cells,
    }
    folder = paths.new_clients("digits", generator)
    folder.mkdir(parents=True)
    skipped = [{"client": "b", "labels": 64, "records": 40}]
    write_json(
        folder / "results.json",
        {**content, "skipped": skipped, "privacy": dict.fromkeys("ab", private)},
    )


def _cell(algorithm, client, labels, draw, accuracy):
    cell = {"algorithm": algorithm, "client": client, "labels": labels, "draw": draw}
    return {**cell, "accuracy": accuracy, "global_accuracy": accuracy / 2}


def _export(client, generator, epsilon):
    folder = paths.synthetic("digits", client, generator)
    weak = ["only noise"] if generator == "datalens" else []
    folder.mkdir(parents=True)
    write_json(folder / "card.json", {"privacy": statement(epsilon, MUS[epsilon]), "weak": weak})
    (folder / "grid.png").write_bytes(PIXEL)
    scores = {"tstr_accuracy": 0.6, "tstr_accuracy_global": 0.5, "fid": 4.0, "fid_floor": 0.5}
    quality = paths.quality("digits", client, generator)
    quality.mkdir(parents=True)
    write_json(
        quality / "quality.json", {**scores, "records": {"a": 200, "b": 40}[client], "warnings": []}
    )


def _method(method, folder, shift, rounds):
    folder.mkdir(parents=True)
    after = {"a": 0.9 - shift, "b": 0.5 - shift}
    clients = {"a": _scores(0.2, after["a"]), "b": _scores(0.4, after["b"])}
    private = {"epsilon_max": 10.0, "guarantee": "formal"}
    if method == "dpsgd":
        private["statements"] = {}
        for client, epsilon in EPSILONS.items():
            private["statements"][client] = statement(epsilon, None, "RDP")
    if method in ("local", "random_init"):
        private = {"epsilon_max": 0.0, "guarantee": "nothing leaves a client"}
    selections = {
        "bmta": 0.99,
        "bmt_f1": 0.98,
        "selected": SELECTED,
        "candidates": 2 if rounds else 1,
    }
    write_json(
        folder / "results.json", {"method": method, "clients": clients, **selections, **private}
    )
    correct = {client: np.arange(100) < round(100 * share) for client, share in after.items()}
    write_arrays(folder / paths.CORRECT, correct)
    sent = 4_000_000 if rounds else 0
    cost = {
        "rounds": 4 if rounds else 0,
        "bytes_down": sent,
        "bytes_up": sent // 2,
        "seconds": 12.5,
    }
    write_json(folder / paths.COST, cost if method == "dpsgd" else {**cost, "seconds_at_home": 3.5})
    curve = [_point(0)]
    if rounds:
        # Round 2 is scored, and not fine-tuned.
        curve += [{"round": 2, "global_accuracy": 0.2}, _point(3), _point(4)]
    write_csv(folder / "rounds.csv", curve)


def _point(number):
    row = {"round": number, "accuracy_before": 0.3, "macro_f1_after": 0.6}
    return {**row, "accuracy_after": 0.7 + number / 100, "global_accuracy": number / 10}


def _scores(before, after):
    return {
        "before": {"accuracy": before, "macro_f1": before / 2},
        "after": {"accuracy": after, "macro_f1": after / 2},
        "global_before": before / 4,
        "global_after": after / 4,
        "epochs": 3,
    }
