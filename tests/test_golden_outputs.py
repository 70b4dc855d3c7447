"""Every output of a whole `dvc repro` at tiny size has the bytes that it had when
`golden/outputs.json` was written.

A change that should move no byte is held to it. Bytes of training follow from the processor and
from torch's version, so the file says of which they are, and the test skips elsewhere. To write it
anew, before a change on the same machine:

    GOLDEN=write python -m pytest -q -m slow tests/test_golden_outputs.py
"""

import hashlib
import json
import os
from pathlib import Path

import pytest
import torch
from project import ROOT

from pipelines.config.training import BASELINES

pytestmark = [pytest.mark.pipeline, pytest.mark.slow]

FILE = ROOT / "tests/golden/outputs.json"
OUTPUTS = ("data", "models/initial", "models/private")
SECRETS = {"own": ("before-partition", "c0", "c1", "all-clients"), "raw": ("all-data-sets",)}
OF_A_CLOCK = (
    "cost.json",
    "salt",
)  # a salt fills its folder to a power of two bytes, seconds and all


def machine() -> str:
    """Names what bytes of training follow from beside the code."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    return f"{', '.join(sorted(models))}; {torch.backends.cpu.get_cpu_capability()}; torch {torch.__version__}"


def deterministic(params: dict) -> None:
    """Noise follows from the seed, and most kinds of methods take part."""
    params["privacy"]["noise"] = "seeded_for_tests"
    params["baselines"]["algorithms"] = list(BASELINES)
    for name in BASELINES:
        block = params["baselines"][name]
        for setting in ("rounds", "epochs"):
            if setting in block:
                block[setting] = 2
    params["dp_baselines"]["algorithms"] = ["dpsgd", "dpsgd_warm", "nbafl", "adap"]


def hashes(path: Path) -> dict[str, str]:
    """Returns {file: its md5} of every output but the report, whose pages show seconds."""
    found = {}
    for folder in OUTPUTS:
        for file in sorted((path / folder).rglob("*")):
            if file.is_file() and file.name not in (".gitignore", *OF_A_CLOCK):
                found[str(file.relative_to(path))] = hashlib.md5(file.read_bytes()).hexdigest()
    return found


def test_a_whole_repro_has_the_bytes_that_it_had(within):
    golden = json.loads(FILE.read_text()) if FILE.exists() else {}
    if os.environ.get("GOLDEN") != "write" and machine() not in golden:
        pytest.skip(f"the golden outputs are of other machines: {'; '.join(golden)}")
    within.edit(deterministic)
    for folder, owners in SECRETS.items():
        for owner in owners:
            secret = within.path / "ledgers" / folder / f"{owner}.secret"
            secret.parent.mkdir(parents=True, exist_ok=True)
            secret.write_bytes(hashlib.sha256(owner.encode()).digest())
    within.repro()
    files = hashes(within.path)
    if os.environ.get("GOLDEN") == "write":
        golden[machine()] = files
        FILE.write_text(json.dumps(golden, indent=1) + "\n")
    assert files == golden[machine()]
