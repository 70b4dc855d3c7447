"""Tests a run by name, and what both sides must have alike."""

import pytest
from project import ROOT

from pipelines import config
from pipelines.config.dp import DP_BASELINES
from pipelines.config.training import BASELINES
from pipelines.errors import UserError
from pipelines.federation.run_spec import RunSpec, named
from pipelines.training import public_basis
from pipelines.training.public_basis import StoredBasis


@pytest.fixture(scope="module")
def params() -> config.Params:
    loaded = config.load(ROOT / "params.yaml")
    lists = {"baselines": BASELINES, "dp_baselines": DP_BASELINES}
    blocks = {}
    for block, names_of_all in lists.items():
        update = {"algorithms": list(names_of_all)}
        blocks[block] = getattr(loaded, block).model_copy(update=update)
    return loaded.model_copy(update=blocks)


def names(dataset="digits", method="fedavg", generator="dp_moments") -> dict:
    return {"dataset": dataset, "method": method, "generator": generator}


@pytest.mark.parametrize(
    ("method", "generator"), [("pppfl", "datalens"), ("scaffold", "dp_moments"), ("dpsgd", "")]
)
def test_known_names_make_a_run(params, method, generator):
    run = named(params, names(method=method, generator=generator))
    assert run == RunSpec("digits", method, generator) and run.names == names(
        method=method, generator=generator
    )


@pytest.mark.parametrize(
    "wrong",
    [
        names(dataset="mnist"),
        names(dataset="../../etc"),
        names(method="everything"),
        names(method="dpsgd"),
        names(method="fedavg", generator=""),
        names(generator="gan"),
        {},
    ],
)
def test_unknown_names_make_none(params, wrong):
    with pytest.raises(UserError, match="know no"):
        named(params, wrong)


@pytest.mark.parametrize("method", ["fedavg_real", "pppfl_real", "local", "random_init", "single"])
def test_no_client_serves_what_reads_private_records_or_has_no_rounds(params, method):
    with pytest.raises(UserError, match="no method that clients serve"):
        named(params, names(method=method))


def changed(params: config.Params, **blocks) -> config.Params:
    return params.model_copy(update=blocks)


def test_terms_name_what_differs(params):
    run, base = (
        RunSpec("digits", "fedavg", "dp_moments"),
        RunSpec("digits", "fedavg", "dp_moments").terms(params),
    )

    def differing(other: config.Params) -> set[str]:
        return {name for name, value in run.terms(other).items() if value != base[name]}

    assert not differing(params)
    assert differing(changed(params, seed=params.seed + 1)) == {"seed"}
    fedavg = params.baselines.fedavg.model_copy(update={"learning_rate": 0.07})
    assert differing(
        changed(params, baselines=params.baselines.model_copy(update={"fedavg": fedavg}))
    ) == {"settings"}
    profile = params.profiles["digits"].model_copy(update={"images": 7})
    assert differing(changed(params, profiles={**params.profiles, "digits": profile})) == {
        "profile"
    }
    gathering = params.federation.model_copy(update={"gather_sets": True})
    assert differing(changed(params, federation=gathering)) == {"gather_sets"}


def test_no_setting_has_sets_gathered_in_a_noisy_run(params):
    gathering = params.federation.model_copy(update={"gather_sets": True})
    other = changed(params, federation=gathering)
    assert RunSpec("digits", "fedavg", "dp_moments").gathers_pool(other)
    assert not RunSpec("digits", "dpsgd").gathers_pool(other)
    assert RunSpec("digits", "dpsgd").terms(other) == RunSpec("digits", "dpsgd").terms(params)


def test_a_clients_budget_is_nobodys_business_but_its_own(params):
    """Another epsilon of any client changes no terms: they are digests, and few values make a digest guessable."""
    poorer = {
        name: client.model_copy(update={"epsilon": 0.5}) for name, client in params.clients.items()
    }
    for run in (RunSpec("digits", "fedavg", "dp_moments"), RunSpec("digits", "dpsgd")):
        assert run.terms(changed(params, clients=poorer)) == run.terms(params)


def test_terms_of_fixed_features_name_their_basis(params, monkeypatch):
    """Two bases are two networks, though the linear layers on them have one shape."""
    profile = params.profiles["digits"].model_copy(update={"classifier": "scatter"})
    scatter = changed(params, profiles={**params.profiles, "digits": profile})
    run = RunSpec("digits", "fedavg", "dp_moments")
    digests = []
    for sha256 in ("one", "other"):
        stored = StoredBasis(None, sha256)
        monkeypatch.setattr(public_basis, "stored_basis", lambda shape, stored=stored: stored)
        digests.append(run.terms(scatter))
    assert {name for name in digests[0] if digests[0][name] != digests[1][name]} == {"features"}
    assert "features" not in run.terms(params)
