"""Tests that a planned release is known by its client, generator and records."""

from dataclasses import replace

import numpy as np
from project import ROOT

from pipelines import config
from pipelines.datasets.labelled_images import Images
from pipelines.synthesis.client_release import ClientRelease

RECORDS = Images(np.zeros((6, 8, 8, 1), np.uint8), np.arange(6), np.arange(6))


def test_each_name_and_each_record_makes_another_release():
    params = config.load(ROOT / "params.yaml")
    planned = ClientRelease(params, "digits", "c0", "dp_moments")
    others = [
        replace(planned, client="c2"),
        replace(planned, generator="dp_merf"),
        replace(planned, params=params.model_copy(update={"seed": 8})),
    ]
    entries = [each.entry(RECORDS) for each in (planned, *others)]
    entries.append(planned.entry(RECORDS[:5]))
    assert len({entry.fingerprint for entry in entries}) == len(entries)
    assert planned.entry(RECORDS).fingerprint == entries[0].fingerprint


def test_the_entry_spends_the_plans_budget_with_noise_that_counts():
    params = config.load(ROOT / "params.yaml")
    planned = ClientRelease(params, "digits", "c1", "dp_moments")
    entry = planned.entry(RECORDS)
    assert entry.cost == {"kind": "gaussian", "mu": planned.plan.statement.mu}
    assert (entry.statement["epsilon"], entry.statement["guarantee"]) == (3.0, "formal")
    privacy = params.privacy.model_copy(update={"noise": "seeded_for_tests"})
    for_tests = replace(planned, params=params.model_copy(update={"privacy": privacy}))
    assert for_tests.entry(RECORDS).cost == {"kind": "none"}
