"""Tests that no stage loads a heavy library that it does not use: its start is most of a small stage.

In CPU-seconds: torch 1.7, then learn2learn 0.7, scikit-learn 0.6, scipy.stats 0.4. torchvision and
torch-fidelity take 1.3 each, nearly all of it for torch._dynamo. The first optimiser of a stage
imports that, too.
"""

import subprocess
import sys

import pytest
from imports import ROOT

HEAVY = {
    "dp_accounting",
    "learn2learn",
    "matplotlib",
    "opacus",
    "opendp",
    "pandas",
    "pyarrow",
    "scipy",
    "sklearn",
    "torch",
    "torch_fidelity",
    "torchvision",
}
# {stage: the heavy libraries that it uses from its first function on}
USED = {
    # sklearn imports pyarrow where there is one, in 0.05 s
    "check_quality": {"pyarrow", "scipy", "sklearn", "torch", "torch_fidelity", "torchvision"},
    "export_synthetic": {"pyarrow", "scipy"},
    "fine_tune": {"torch"},
    "fine_tune_noisy": {"scipy", "torch"},
    "joint_release": set(),
    # learn2learn imports torchvision and scipy
    "meta_train": {"learn2learn", "scipy", "torch", "torchvision"},
    "new_clients": {"torch"},
    "partition": set(),
    "prepare": set(),
    "report": {"matplotlib", "scipy"},
    "scores": {"scipy"},
    "train_alone": {"torch"},
    "train_baseline": {"torch"},
    "train_dp_baseline": {"scipy", "torch"},
    "train_generator": {"scipy"},
    "train_noisy": {"scipy", "torch"},
}


def test_each_stage_is_named():
    stages = {file.stem for file in (ROOT / "stages").glob("[!_]*.py")}
    assert stages - {"cli"} == set(USED)


# each of these starts a Python with torch
@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(stage, marks=[pytest.mark.slow] if "torch" in used else [])
        for stage, used in sorted(USED.items())
    ],
)
def test_a_stage_loads_no_heavy_library_that_it_does_not_use(stage):
    code = f"import sys, stages.{stage}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert HEAVY & set(done.stdout.split()) <= USED[stage]
