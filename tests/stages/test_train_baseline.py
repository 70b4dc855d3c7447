"""Tests that a baseline whose clients are on other machines is refused, before anything is read."""

import pytest
from project import ROOT

from pipelines import config
from pipelines.errors import UserError
from stages import train_baseline


@pytest.fixture
def remote(tmp_path, monkeypatch) -> config.Params:
    """Returns the shipped parameters with clients elsewhere, in a folder without any record."""
    params = config.load(ROOT / "params.yaml")
    monkeypatch.chdir(tmp_path)
    changed = params.federation.model_copy(update={"engine": "nvflare", "mode": "remote"})
    return params.model_copy(update={"federation": changed})


@pytest.mark.parametrize("method", ["pooled", "fedavg", "sda_fl", "pppfl_paper"])
def test_a_method_with_messages_names_the_command_that_runs_it(remote, method):
    command = (
        "run `python -m stages.meta_train --dataset digits --generator datalens "
        f"--method {method}`, and at each client `python -m stages.fine_tune`"
    )
    with pytest.raises(UserError, match=command) as error:
        train_baseline.run(remote, "digits", method)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("method", ["local", "random_init", "single", "fedavg_real"])
def test_a_method_without_messages_is_not(remote, method):
    """It runs on the clients of these parameters, and stops here at the shards that are not there."""
    with pytest.raises(UserError, match=r"is missing\. Run the stage that makes it"):
        train_baseline.run(remote, "digits", method)


def test_nor_is_one_in_this_process_or_on_this_machine(remote):
    for changed in ({"engine": "inprocess"}, {"mode": "local"}):
        federation = remote.federation.model_copy(update=changed)
        params = remote.model_copy(update={"federation": federation})
        with pytest.raises(UserError, match="is missing"):
            train_baseline.run(params, "digits", "fedavg")
