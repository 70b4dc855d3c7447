"""Tests that the shipped parameter files resolve to the golden values, block by block and in the
same order.
"""

import json
import os

from project import ROOT
from resolved_settings import FILE, digests

from pipelines import config


def test_every_setting_of_every_data_set_is_what_it_was():
    found = digests(config.load(ROOT / "params.yaml"))
    if os.environ.get("GOLDEN") == "write":
        FILE.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(FILE.read_text())
