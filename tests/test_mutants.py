"""Tests that the planted bugs still fit the code. `make mutants` shows that each is caught."""

import pytest
from mutants import MUTANTS
from project import ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_fits_one_place_and_names_a_test_that_exists(mutant):
    assert (ROOT / mutant.file).read_text().count(mutant.old) == 1
    file, _, name = mutant.test.partition("::")
    assert name, "a whole file fails too easily"
    assert f"def {name}(" in (ROOT / file).read_text()
