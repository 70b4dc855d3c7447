"""Makes whole `dvc repro` runs in this process (`within`), with every random number under the
test's control.
"""

import contextlib
import hashlib
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML
from within import Within, as_fast_as_ours

from pipelines.privacy import discrete_gaussian
from pipelines.privacy.ledger import Ledger
from pipelines.privacy.noise import OsEntropy
from pipelines.privacy.secure_sums.in_process import Summation
from pipelines.synthesis import dp_moments
from pipelines.synthesis.datalens import generator as datalens


class World(Within):
    """Is a project whose stages run in this process.

    `tape`: the results of its releases, by command and position.
    """

    def __init__(self, path: Path, tape: dict | None = None):
        super().__init__(path)
        self.recording = tape is None
        self.tape = {} if tape is None else tape

    def run_stages(self, *names: str) -> None:
        """Runs all cells of the stages of these names in the graph's order, without DVC."""
        with self.entered(), Repo(str(self.path)) as repo:
            for name in names:
                for stage in repo.index.stages:
                    if stage.name.split("@")[0] == name:
                        self.call(stage.cmd)

    def carried(self) -> dict[str, bytes]:
        """Returns {name: bytes} of all that can leave: Git after `git add -A` and `dvc exp save`,
        and `dvc push`.
        """
        remote = self.path.parent / f"{self.path.name}-remote"
        local = f"[core]\n    remote = here\n['remote \"here\"']\n    url = {remote}\n"
        (self.path / ".dvc/config.local").write_text(local)
        with contextlib.chdir(self.path), as_fast_as_ours(), Repo(str(self.path)) as repo:
            # This does `dvc commit --force`, too.
            experiment = repo.experiments.save(name="scan", force=True)
            self.git("add", "-A")
            self.git("commit", "-q", "--allow-empty", "-m", "all that Git would take")
            repo.push(run_cache=True)
        return {
            **self._in_git("HEAD", "git"),
            **self._in_git(experiment, "experiment"),
            **self._in_remote(remote),
        }

    def _in_git(self, commit: str, kind: str) -> dict[str, bytes]:
        tree = self.path.parent / f"{self.path.name}.tar"
        self.git("archive", "-o", str(tree), commit)
        with tarfile.open(tree) as files:
            contents = {}
            for file in files:
                if file.isfile():
                    contents[f"{kind} {file.name}"] = files.extractfile(file).read()
            return contents

    def _in_remote(self, remote: Path) -> dict[str, bytes]:
        """Returns objects by the path of their content, and run-cache entries by their command and
        a number.
        """
        sources = {}
        for folder in ("data", "models"):
            for file in filter(Path.is_file, (self.path / folder).rglob("*")):
                sources[hashlib.md5(file.read_bytes()).hexdigest()] = file
        lock = YAML(typ="safe").load((self.path / "dvc.lock").read_text())
        for stage in lock["stages"].values():
            for out in stage["outs"]:
                sources[out["md5"]] = self.path / out["path"]
        contents = {}
        for file in filter(Path.is_file, (remote / "files").rglob("*")):
            source = sources.get(file.parent.name + file.name)
            name = source.relative_to(self.path) if source else file.relative_to(remote)
            contents[f"remote {name}"] = file.read_bytes()
        for number, file in enumerate(filter(Path.is_file, (remote / "runs").rglob("*"))):
            command = YAML(typ="safe").load(file.read_text())["cmd"]
            contents[f"run cache {command} #{number}"] = file.read_bytes()
        return contents

    @contextlib.contextmanager
    def entered(self) -> Iterator[pytest.MonkeyPatch]:
        with super().entered() as patch:
            patch.setattr(OsEntropy, "discrete_gaussian", self._noise)
            patch.setattr(
                OsEntropy,
                "normal",
                lambda _, shape: np.random.default_rng(0).standard_normal(shape),
            )
            patch.setattr(
                OsEntropy, "uniform", lambda _, count: np.random.default_rng(1).random(count)
            )
            # The total is public and only printed, and takes seconds.
            patch.setattr(Ledger, "total_epsilon", lambda *_, **__: 0.0)
            for module in (dp_moments, datalens):
                patch.setattr(module, "release", self._release)
            patch.setattr(Summation, "total", self._carried(Summation.total))
            yield patch

    def call(self, command: str) -> None:
        self.running = command
        self.position = 0
        super().call(command)

    def _noise(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:
        seed = int.from_bytes(
            hashlib.sha256(f"{self.running} {self.position}".encode()).digest()[:8], "big"
        )
        return np.rint(np.random.default_rng(seed).normal(0, sigma, shape)).astype(np.int64)

    def _release(self, total: np.ndarray, **settings) -> np.ndarray:
        """Runs the mechanism itself in a world without a tape.

        Otherwise it returns what the tape has, for any sum that was to be released.
        """
        return self._taped(discrete_gaussian.release(total, **settings))

    def _carried(self, total: Callable) -> Callable:
        """Returns the sum over clients by `total`, from the tape where there is one."""
        return lambda *known: self._taped(total(*known))

    def _taped(self, noisy: np.ndarray) -> np.ndarray:
        if self.recording:
            self.tape[self.running, self.position] = noisy
        recorded = self.tape[self.running, self.position]
        assert recorded.shape == noisy.shape
        self.position += 1
        return recorded
