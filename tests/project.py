"""Makes a FedLens checkout at tiny size, to run real stages and real `dvc repro` in."""

import contextlib
import importlib.util
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import parameter_files

from pipelines.config.dp import DP_BASELINES

ROOT = Path(__file__).resolve().parents[1]
CANARY = b"PRIVATE-CANARY"
BIN = Path(sys.executable).parent
ENV = {
    **os.environ,
    "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    "OMP_NUM_THREADS": "1",
    "DVC_NO_ANALYTICS": "1",
}
GIT = [
    "git",
    "-c",
    "user.email=t@example.invalid",
    "-c",
    "user.name=t",
    "-c",
    "commit.gpgsign=false",
]


class Project:
    """Holds a FedLens checkout in `path`."""

    def __init__(self, path: Path):
        self.path = path

    def run(self, *command: str, ok: bool = True, **options) -> subprocess.CompletedProcess:
        done = subprocess.run(
            command, cwd=self.path, env=ENV, text=True, capture_output=True, **options
        )
        assert not ok or done.returncode == 0, done.stdout + done.stderr
        return done

    def stage(
        self, name: str, *arguments: str, ok: bool = True, **options
    ) -> subprocess.CompletedProcess:
        return self.run(sys.executable, "-m", f"stages.{name}", *arguments, ok=ok, **options)

    def here(self, name: str, *arguments: str, ok: bool = True) -> subprocess.CompletedProcess:
        """Runs a stage's command in this process, which saves the start of another."""
        command = [name, *arguments]
        out = io.StringIO()
        said = io.StringIO()
        status = 0
        with (
            mock.patch.object(sys, "argv", command),
            contextlib.chdir(self.path),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(said),
            warnings.catch_warnings(),
        ):
            # a stage that another test imported runs as a fresh module all the same
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                runpy.run_module(f"stages.{name}", run_name="__main__", alter_sys=True)
            except SystemExit as end:
                status = 1
                print(end.code, file=sys.stderr)
        done = subprocess.CompletedProcess(command, status, out.getvalue(), said.getvalue())
        assert not ok or status == 0, done.stdout + done.stderr
        return done

    def dvc(self, *arguments: str, ok: bool = True) -> subprocess.CompletedProcess:
        return self.run(sys.executable, "-m", "dvc", *arguments, ok=ok)

    def git(self, *arguments: str) -> str:
        return self.run(*GIT, *arguments).stdout

    def edit(self, change: Callable[[dict], None]) -> None:
        """Applies `change` to the parameter files, which it sees as one mapping."""
        params = parameter_files.read(self.path)
        change(params)
        parameter_files.write(self.path, params)

    def export(self, clients: list[str], generator: str) -> None:
        """Makes the clients' sets on the user's own images in this process, by the stages up to
        export_synthetic.
        """
        # `mutants` imports this file, and torch is slow, so these imports are not above.
        from pipelines import config
        from stages import export_synthetic, joint_release, partition, prepare, train_generator

        with contextlib.chdir(self.path):
            params = config.load()
            prepare.run(params, "own")
            partition.run(params, "own")
            joint_release.run(params, "own")
            for client in clients:
                train_generator.run(params, "own", client, generator)
                export_synthetic.run(params, "own", client, generator)

    def repro(self, *targets: str, ok: bool = True) -> list[str]:
        """Runs what `make repro` runs, and returns the names of the stages whose command ran."""
        done = self.run(sys.executable, "-m", "pipelines.reproduction", *targets, ok=ok)
        return re.findall(r"^\[\d+/\d+\] ([^,\n]+)", done.stdout, re.MULTILINE)


def names_in(folder: Path) -> set[str]:
    """Returns the names of what lies in a folder."""
    return {file.name for file in folder.iterdir()}


def copy_tree(path: Path) -> None:
    """Copies the working tree's files as Git would take them, without a record of what DVC ran.

    Files that Python compiled from them beside them are copied, too. Without them each stage compiles the project.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True, capture_output=True
    )
    for name in listed.stdout.splitlines():
        if name != "dvc.lock" and (ROOT / name).is_file():
            _copy(ROOT / name, path / name)
            compiled = Path(importlib.util.cache_from_source(name))
            # it is absolute where PYTHONPYCACHEPREFIX has them elsewhere
            if name.endswith(".py") and not compiled.is_absolute() and (ROOT / compiled).exists():
                _copy(ROOT / compiled, path / compiled)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # with its time, by which Python knows what it has compiled
    shutil.copy2(source, target)


def tiny(params: dict) -> None:
    """Changes parameters to two clients and stages of seconds, on own images with a canary
    (`own_images`).
    """
    params["datasets"] = ["own"]
    plain = parameter_files.shipped_content()  # each block by itself, without a base
    params["profiles"]["own"] = {**plain["profiles"]["digits"], "source": "npz", "classes": 3}
    params["profiles"]["own"]["synthesis"]["datalens"]["teachers"] = 8
    params["profiles"]["own"]["synthesis"]["datalens"]["steps"] = 2
    params["clients"] = {"c0": {"epsilon": 10.0}, "c1": {"epsilon": 3.0}}
    params["partition"].update(
        clients=["c0", "c1"], scheme="iid", small={"client": "c1", "train_records": 20}
    )
    params["profiles"]["own"] |= {"images": 60, "training": {}, "public_fraction": 0.25}
    params["quality"]["repeats"] = 1
    params["meta"]["rounds"] = 2
    params["fine_tune"].update(epochs=2, every=2, replay=replay_in_seconds())
    for network in params["networks"].values():
        for block in ("fine_tune", "meta", "pooled"):
            network.pop(block, None)
    params["baselines"]["algorithms"] = ["random_init", "fedavg"]
    params["baselines"]["fedavg"]["rounds"] = 2
    params["baselines"]["pooled"]["steps"] = 20
    params["baselines"]["single"]["steps"] = 20
    params["meta"]["warm_start"]["steps"] = 20
    params["dp_baselines"] = plain["dp_baselines"]
    for algorithm in DP_BASELINES:
        params["dp_baselines"][algorithm]["rounds"] = 2
    params["dp_baselines"]["algorithms"] = ["dpsgd"]
    params["dp_baselines"]["dpsgd_warm"]["warm_start"].update(images=60, epochs=2)
    params["new_clients"].update(
        held_out=["c0"], labels=[4, 8], draws=1, steps=5, algorithms=["pppfl", "random_init"]
    )


def replay_in_seconds() -> dict:
    """Returns settings of the recipe `replay` with few steps. From 30 labels on it trains alone, too."""
    few = {"from_labels": 0, "steps": 3, "learning_rate": 0.003, "synthetic_share": 0.2}
    return {"schedules": [few, {**few, "from_labels": 30, "mean_with_local": True}]}


def own_images(count: int = 150) -> dict[str, np.ndarray]:
    """Returns 8x8 images of three classes. The first pixels of each spell the canary."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 3
    images = rng.integers(0, 60, (count, 8, 8)).astype(np.uint8)
    images[:, 3:, :] += (labels * 80).astype(np.uint8)[:, None, None]
    images.reshape(count, 64)[:, : len(CANARY)] = np.frombuffer(CANARY, np.uint8)
    return {"images": images, "labels": labels}
