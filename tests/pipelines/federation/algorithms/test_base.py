"""Every algorithm obeys the one contract: four functions, and the scalars that it may send."""

import inspect
from pathlib import Path

import pytest

from pipelines import methods
from pipelines.config.dp import DP_BASELINES
from pipelines.config.training import BASELINES
from pipelines.federation.algorithms import base
from pipelines.federation.algorithms.base import Algorithm
from pipelines.federation.algorithms.noisy_base import NoisyAlgorithm
from pipelines.federation.core.messages import ScalarRange

WITHOUT_ROUNDS = (*methods.AT_HOME, *methods.AT_ONE_PLACE)
METHODS = ["pppfl", *(name for name in BASELINES if name not in WITHOUT_ROUNDS), *DP_BASELINES]
FOUR = ("server", "client", "client_update", "server_step")


def parameters(function) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", FOUR)
def test_every_algorithm_has_the_four_functions_of_the_contract(method, name):
    declared = getattr(Algorithm, name)
    assert parameters(getattr(base.load(method), name)) == parameters(declared)


@pytest.mark.parametrize("method", METHODS)
def test_every_algorithm_declares_what_its_clients_may_send(method):
    algorithm = base.load(method)
    # the clients of a method without rounds say nothing
    assert algorithm.TELLS or method == "pooled"
    for name, scalar in algorithm.TELLS.items():
        assert isinstance(scalar, ScalarRange) and scalar.low < scalar.high, name
        assert scalar.kind in (int, float)


@pytest.mark.parametrize("method", METHODS)
def test_an_optional_shared_pass_takes_all_clients_at_once(method):
    update_all = getattr(base.load(method), "update_all", None)
    assert update_all is None or parameters(update_all) == ["payload", "clients", "settings"]


@pytest.mark.parametrize("method", DP_BASELINES)
def test_a_noisy_algorithm_plans_accounts_and_names_its_version(method):
    algorithm = base.load(method)
    assert parameters(algorithm.new_account) == parameters(NoisyAlgorithm.new_account)
    assert isinstance(algorithm.VERSION, int) and algorithm.IDENTITY.neutral


def test_every_module_is_an_algorithm_that_some_method_runs():
    folder = Path(base.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "base", "noisy_base"}
    assert {methods.module(method) for method in METHODS} == modules
