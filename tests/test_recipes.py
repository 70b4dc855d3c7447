"""The recipes of CONTRIBUTING.md: each is a diff that applies to this tree, passes its own test, and
runs in a real stage at tiny size.

To write a diff anew after a change of the lines around it: apply it with `git apply --3way`, mend
what does not fit, and put the output of `git diff` in its place.
"""

import subprocess
from pathlib import Path

import numpy as np
import parameter_files
import pytest
from project import ROOT, Project, copy_tree, own_images, tiny

RECIPES = ROOT / "docs" / "recipes"
# how many files a contributor touches
FILES = {"generator": 4, "federated_algorithm": 4, "noisy_algorithm": 5, "data_set": 2}


@pytest.fixture
def project(tmp_path) -> Project:
    """Returns a repository with this tree's files, as a contributor clones it."""
    path = tmp_path / "fedlens"
    copy_tree(path)
    project = Project(path)
    project.git("init", "-q", "-b", "main")
    project.git("add", "-A")
    return project


@pytest.fixture
def cook(project):
    """Applies a recipe's diff, and returns the parameters with it, before they become tiny."""

    def cook(recipe: str) -> dict:
        project.git("apply", str(RECIPES / f"{recipe}.diff"))
        params = parameter_files.read(project.path)
        project.edit(tiny)
        return params

    return cook


def touched(recipe: str) -> list[Path]:
    lines = (RECIPES / f"{recipe}.diff").read_text().splitlines()
    return [Path(line.split(" b/")[1]) for line in lines if line.startswith("diff --git ")]


def run_own_tests(project: Project, recipe: str) -> None:
    tests = [str(path) for path in touched(recipe) if path.parts[0] == "tests"]
    assert tests
    done = project.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert " passed" in done.stdout


@pytest.mark.parametrize(("recipe", "files"), FILES.items())
def test_a_recipe_touches_few_files(recipe, files):
    assert len(touched(recipe)) == files


@pytest.mark.parametrize("recipe", FILES)
def test_a_recipe_applies(recipe):
    done = subprocess.run(
        ["git", "apply", "--check", str(RECIPES / f"{recipe}.diff")],
        cwd=ROOT,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr


def test_every_recipe_is_shown_in_contributing():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert {path.stem for path in RECIPES.glob("*.diff")} == set(FILES)
    for recipe in FILES:
        assert f"docs/recipes/{recipe}.diff" in text


@pytest.mark.slow
@pytest.mark.pipeline
def test_the_generator_trains_exports_and_passes_its_test(project, cook):
    params = cook("generator")
    project.edit(lambda tiny: tiny["synthesis"].update(generators=["class_means"]))
    project.edit(
        lambda tiny: tiny["synthesis"].update(class_means=params["synthesis"]["class_means"])
    )
    write_images(project)
    ran = project.repro("export_synthetic@own-c0-class_means")
    assert ran[-1] == "export_synthetic@own-c0-class_means"
    assert (project.path / "data/synthetic/own/c0/class_means/card.json").exists()
    run_own_tests(project, "generator")


@pytest.mark.slow
@pytest.mark.pipeline
def test_the_federated_algorithm_runs_as_a_baseline_and_passes_its_test(project, cook):
    params = cook("federated_algorithm")
    block = {**params["baselines"]["fedavgm"], "rounds": 2}
    project.edit(lambda tiny: tiny["synthesis"].update(generators=["dp_moments"]))
    project.edit(lambda tiny: tiny["baselines"].update(fedavgm=block, algorithms=["fedavgm"]))
    write_images(project)
    project.repro("train_baseline@own-fedavgm")
    folder = project.path / "models/private/baselines/own/fedavgm"
    assert (folder / "fedavgm-dp_moments/results.json").exists()
    run_own_tests(project, "federated_algorithm")


@pytest.mark.slow
@pytest.mark.pipeline
def test_the_noisy_algorithm_spends_in_the_ledger_and_passes_its_test(project, cook):
    params = cook("noisy_algorithm")
    block = {**params["dp_baselines"]["fullbatch"], "rounds": 2}
    project.edit(
        lambda tiny: tiny["dp_baselines"].update(fullbatch=block, algorithms=["fullbatch"])
    )
    write_images(project)
    project.repro("train_dp_baseline@own-fullbatch")
    assert "fullbatch" in (project.path / "ledgers/own/c0.jsonl").read_text()
    run_own_tests(project, "noisy_algorithm")


def write_images(project: Project) -> None:
    np.savez(project.path / "raw" / "own.npz", **own_images())


READ_KMNIST = """
import gzip, hashlib
from pathlib import Path
import numpy as np
from torchvision.datasets import KMNIST
from pipelines import config
from pipelines.datasets import shards
from stages import partition, prepare

def archive(array):
    header = bytes([0, 0, 8, array.ndim])
    header += b"".join(side.to_bytes(4, "big") for side in array.shape)
    return gzip.compress(header + array.tobytes())

folder = Path("raw/KMNIST/raw")
folder.mkdir(parents=True)
table = []
rng = np.random.default_rng(0)
for part, count in (("train", 400), ("t10k", 20)):
    images = rng.integers(0, 256, (count, 28, 28)).astype(np.uint8)
    labels = (np.arange(count) % 10).astype(np.uint8)
    for name, array in (("images-idx3", images), ("labels-idx1", labels)):
        path = folder / f"{part}-{name}-ubyte.gz"
        path.write_bytes(archive(array))
        table.append((path.name, hashlib.md5(path.read_bytes()).hexdigest()))
KMNIST.resources = table
params = config.load()
prepare.run(params, "kmnist")
partition.run(params, "kmnist")
dealt = shards.read_all("kmnist", ["c0", "c1"], params.profiles["kmnist"])
print(sum(len(shard.train) for shard in dealt.values()))
"""


@pytest.mark.pipeline
def test_the_data_set_is_read_and_partitioned(project, cook):
    cook("data_set")
    project.edit(lambda tiny: tiny.update(datasets=["kmnist"]))
    done = project.run("python", "-c", READ_KMNIST)
    assert 250 < int(done.stdout.split()[-1]) < 400
