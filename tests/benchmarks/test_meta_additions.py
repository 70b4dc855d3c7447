"""The ablation of PPPFL's additions: each variant differs from the shipped one where it says."""

import pytest

from benchmarks import meta_additions
from pipelines import config


def test_a_variant_leaves_out_or_has_alone_what_it_says():
    shipped = config.load().training("mnist", "meta")
    variants = meta_additions.variants(shipped)
    nothing = {"warm_start": None, "few_labels": None, "handed_out_weight": 0.0}
    for name, field in meta_additions.ADDITIONS.items():
        assert getattr(shipped, field)
        without = shipped.model_copy(update={field: nothing[field]})
        alone = shipped.model_copy(update={**nothing, field: getattr(shipped, field)})
        assert variants[f"without {name}"] == without
        assert variants[f"{name} alone"] == alone
    assert len(variants) == 3 * len(meta_additions.ADDITIONS) + 1


def row(variant: str, draw: int, own: float, settings: str = "s") -> dict:
    figures = dict.fromkeys(("handed out", "everybody", "own plain", "everybody plain"), 0.5)
    key = {"dataset": "digits", "variant": variant, "draw": draw, "settings": settings}
    return {**key, **figures, "own": own, "cpu_seconds": 1.0}


def test_differences_to_the_shipped_variant_are_paired_by_draw():
    rows = [row("shipped", 100, 0.9), row("shipped", 101, 0.7)]
    rows += [row("x", 100, 0.8), row("x", 101, 0.8)]
    shipped, other = meta_additions.summary(rows)
    assert shipped["own less shipped"] == 0.0
    assert other["own less shipped"] == pytest.approx(0.0)
    assert other["own deviation"] == pytest.approx(0.2 / 2**0.5)


def test_rows_of_other_settings_go_and_those_of_other_data_sets_stay():
    key = {"dataset": "digits", "variant": "x", "draw": 100, "settings": "new"}
    assert not meta_additions.current(row("y", 100, 0.5, "old"), key)
    assert meta_additions.current(row("y", 100, 0.5, "new"), key)
    assert not meta_additions.current(row("x", 100, 0.5, "new"), key)
    assert meta_additions.current({**row("y", 100, 0.5, "old"), "dataset": "mnist"}, key)
