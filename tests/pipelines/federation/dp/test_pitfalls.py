"""Tests what goes wrong in federated DP-SGD elsewhere (dpfl.md 6.2), as far as no other file here
does.
"""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from blocks import DPSGD
from project import ROOT

from models import classifiers
from pipelines.config import load
from pipelines.config.data import Partition
from pipelines.config.dp import Dpsgd
from pipelines.datasets import partitions
from pipelines.datasets.labelled_images import Images
from pipelines.federation.algorithms import dpsgd
from pipelines.federation.dp.local_steps import Facts, following
from pipelines.federation.noisy_run import NoisyRun
from pipelines.privacy.noise import SeededForTests


def test_a_lot_is_poisson_at_the_rate_that_was_accounted():
    """Lots are not shuffled batches of a fixed size, and the rate is not 1 / (number of batches).

    Each record is drawn by itself, anew in each step.
    """
    settings = Dpsgd(**{**DPSGD, "sampling_rate": 0.013})
    data = Images(np.zeros((2000, 8, 8, 1), np.uint8), np.zeros(2000, int), np.arange(2000))
    network = classifiers.build("mlp", shape=(8, 8, 1), classes=2, seed=0)
    own = dpsgd.Client(network, data, dpsgd.new_account(3.0, 1e-5, settings), SeededForTests(0))
    lots = [own.draw_records().numpy() for _ in range(1000)]
    sizes, often = np.sum(lots, axis=1), np.sum(lots, axis=0)
    assert sizes.mean() == pytest.approx(26, abs=4 * math.sqrt(26 / 1000))
    assert sizes.var() == pytest.approx(26 * 0.987, rel=0.2)
    assert often.var() == pytest.approx(13 * 0.987, rel=0.15), (
        "records are drawn apart from each other"
    )


def test_no_two_clients_share_a_stream():
    """Equal noise would cancel in the difference of two replies, and would not average out."""
    params = load(ROOT / "params.yaml")
    params = params.model_copy(
        update={"privacy": params.privacy.model_copy(update={"noise": "seeded_for_tests"})}
    )
    draws = {
        tuple(NoisyRun(params, "digits", name).source(client).normal((4,)))
        for client in params.clients
        for name in ("dpsgd", "adap")
    }
    assert len(draws) == 2 * len(params.clients)


@pytest.mark.parametrize("pieces, few", [(4, True), (40, False)])
def test_forty_shards_give_three_or_four_labels_and_four_hundred_nearly_all(pieces, few):
    """Adap DP-FL and DPFL-AGN print 400 shards and 40 a client, and describe 40 and 4."""
    labels = np.repeat(np.arange(10), 6000)
    asked = {
        "scheme": "shards",
        "clients": [f"c{n}" for n in range(10)],
        "alpha": 0.5,
        "shards_per_client": pieces,
    }
    asked |= {"min_records": 10, "validation_fraction": 0.1, "test_fraction": 0.1, "small": None}
    parts = partitions.deal(labels, Partition.model_validate(asked), np.random.default_rng(0))
    assert {len(part) for part in parts.values()} == {6000}
    held = [len(np.unique(labels[part])) for part in parts.values()]
    assert max(held) <= 5 if few else min(held) >= 9


def test_noisy_training_imports_no_engine_of_somebody_else():
    code = "import sys, stages.train_dp_baseline; sys.exit('opacus' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


@pytest.mark.parametrize(
    "name", ["mlp", "cnn", "resnet", "papernot", "fedavg_cnn", "abadi", "scatter"]
)
def test_no_network_mixes_records(name):
    # a large basis of scattering features takes long to make
    side = 8 if name == "scatter" else 28
    model = classifiers.build(name, shape=(side, side, 1), classes=10, seed=0)
    assert not [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.modules.batchnorm._NormBase)
    ]
    assert not [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.modules.dropout._DropoutNd)
    ]


@pytest.mark.parametrize("rule", ["ratio", "paper", "paper_corrected", "local_sgd"])
def test_where_rounds_are_not_scarce_every_rule_takes_one_step(rule):
    settings = Dpsgd(**{**DPSGD, "local_steps_rule": rule, "noise_multiplier": 2.0, "rounds": 300})
    facts = Facts(
        tau=1, steps_left=250, rounds_left=299, slope=1.0, loss_gap=1.0, spread=1.0, size=100
    )
    assert following(settings, facts) == 1
