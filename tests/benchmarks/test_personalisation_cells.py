"""The table of personalisation: paired differences by hand, and what a new cell drops."""

import pytest

from benchmarks import common, personalisation_cells
from benchmarks.client_draws import USUAL


def cell(start: str, client: str, own: float, everywhere: float, seed: int = 0) -> dict:
    key = {"regime": USUAL, "dataset": "digits", "seed": seed, "labels": "8", "client": client}
    recipe = "alone" if start == "random" else "replay"
    return {**key, "start": start, "recipe": recipe, "own": own, "global": everywhere}


def test_differences_to_training_alone_are_paired_by_client_and_seed():
    cells = [
        cell("random", "n0", 0.5, 0.2),
        cell("random", "n1", 0.9, 0.3),
        cell("random", "n0", 0.6, 0.2, seed=1),
        cell("pooled", "n0", 0.8, 0.7),
        cell("pooled", "n1", 0.85, 0.8),
        cell("pooled", "n0", 0.9, 0.9, seed=1),
    ]
    alone, pooled = personalisation_cells.summary(cells)
    assert alone["own_less_local"] == alone["worst_own_less_local"] == 0.0
    assert pooled["own_less_local"] == pytest.approx((0.3 - 0.05 + 0.3) / 3)
    assert pooled["worst_own_less_local"] == pytest.approx(-0.05)
    assert pooled["global_less_local_prior_off"] == pytest.approx((0.5 + 0.5 + 0.7) / 3)
    assert (pooled["seeds"], pooled["cells"]) == (2, 3)
    assert (pooled["own_cells_above"], pooled["global_cells_above"]) == (2, 3)


def test_a_cell_takes_the_place_of_its_key_and_others_go_where_they_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(personalisation_cells, "SCRATCH", tmp_path)
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    monkeypatch.setattr(personalisation_cells, "RESULTS", tmp_path)
    first = {**cell("pooled", "n0", 0.5, 0.5), "settings": "old"}
    other = {**first, "regime": "mixed"}
    again = {**first, "settings": "new"}
    for measured in (first, other, again):
        personalisation_cells.add("table", measured)
    assert personalisation_cells.stored("table") == [other, again]
    personalisation_cells.retain("table", lambda cell: cell["settings"] == "new")
    assert personalisation_cells.stored("table") == [again]
    assert len(common.kept("table")) == 1
