"""Holds the shipped parameters, changed at one place, and what pipelines/config says of them."""

import json

import pytest
from parameter_files import shipped_content
from project import ROOT

from pipelines import config
from pipelines.config.data import Augmentation
from pipelines.config.dp import DP_BASELINES
from pipelines.config.files import Assembled
from pipelines.errors import UserError

PARSED = json.dumps(shipped_content())


def shipped() -> dict:
    """Returns a new copy of the shipped parameters.

    Every optional block is filled in, so that each field exists.
    """
    content = json.loads(PARSED)
    dataset = content["datasets"][0]
    content["clients"] = {"c0": {"epsilon": 10.0, "delta": 1e-6}, "c1": {"epsilon": 3.0}}
    content["partition"] |= {
        "clients": ["c0", "c1"],
        "small": {"client": "c1", "train_records": 40},
    }
    content["new_clients"]["held_out"] = ["c1"]
    content["profiles"][dataset]["augmentation"] = dict.fromkeys(Augmentation.model_fields, 0.1)
    content["synthesis"]["datalens"]["threshold"] = 0.5
    content["dp_baselines"]["dpsgd"]["noise_multiplier"] = 1.0
    # settings of a noisy method that does not run are checked in part
    content["dp_baselines"]["algorithms"] = list(DP_BASELINES)
    return content


def load(content):
    """Loads as if the files came to `content`.

    Parsing takes 100 ms, and there are a thousand cases.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config.params, "assemble", lambda path: Assembled(content))
        return config.load(ROOT / "params.yaml")


def mistakes(content) -> list[str]:
    with pytest.raises(UserError) as error:
        load(content)
    return str(error.value).splitlines()


def changed(path: tuple, value) -> dict:
    content = shipped()
    owner = content
    for step in path[:-1]:
        owner = owner[step]
    owner[path[-1]] = value
    return content
