from typing import get_args

from pipelines import methods
from pipelines.config.training import BASELINES, OneModel


def test_every_baseline_that_is_not_a_module_of_its_own_is_known():
    from pathlib import Path

    modules = {
        path.stem for path in (Path(methods.__file__).parent / "federation/algorithms").glob("*.py")
    }
    alone = {*methods.AT_HOME, "single", "pooled"}
    assert {methods.module(name) for name in BASELINES if name not in alone} <= modules


def test_one_model_for_all_is_pppfls_and_of_the_listed_baselines_that_share_one():
    shared = set(methods.of_one_model(list(BASELINES)))
    assert shared == set(get_args(OneModel)) - {"random_init"}
    assert methods.of_one_model([]) == ["pppfl"]


def test_methods_on_synthetic_sets_report_once_per_generator():
    assert methods.reported("fedavg", ["x", "y"]) == ["fedavg/x", "fedavg/y"]
    assert methods.reported("local", ["x", "y"]) == ["local"]
    assert methods.reported("pppfl_real", ["x", "y"]) == ["pppfl_real"]
    assert methods.reported("single", ["x"]) == ["own_synthetic/x", "best_single/x"]


def test_the_upper_bounds_are_the_same_algorithms_under_another_name():
    assert {methods.module(name) for name in methods.ON_REAL_DATA} == {"fedavg", "pppfl"}
