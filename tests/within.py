"""Runs real DVC and real stages in this process.

This saves only the start of a Python per stage, which is most of a tiny stage's time. Graph, cache,
dvc.lock, run cache, push and `dvc exp save` are DVC's own. The command `python -m stages.NAME
--ARGUMENT VALUE` becomes a call of that stage's `run`. `project.Project` starts a process. It is
for how a stage ends for a user, and for what a new process knows.
"""

import contextlib
import importlib
import shlex
from collections.abc import Iterator

import pytest
from dvc.repo import Repo
from project import Project

from pipelines import config
from pipelines.reproduction.hashed_once import hashed_once
from pipelines.reproduction.lock_pieces import lock_in_pieces
from pipelines.reproduction.parsed_once import parsed_once


@contextlib.contextmanager
def as_fast_as_ours() -> Iterator[None]:
    """Has DVC read, write and hash as `make repro` has it, which changes no byte."""
    with parsed_once(), hashed_once(), lock_in_pieces():
        yield


class Within(Project):
    """Is a project whose stages run in this process."""

    def repro(self, *targets: str) -> list[str]:
        """Runs `dvc repro` and returns the names of the stages whose command ran."""
        return self._reproduced(list(targets) or None)

    def _reproduced(self, targets: list[str] | None, **options: bool) -> list[str]:
        self.commands = []
        with self.entered() as patch, as_fast_as_ours(), Repo(str(self.path)) as repo:
            patch.setattr("dvc.stage.run._run", self.command)
            repo.reproduce(targets, **options)
            names = {stage.cmd: stage.name for stage in repo.index.stages}
        return [names[command] for command in self.commands]

    def forced(self, target: str) -> list[str]:
        """Runs `dvc repro -f -s`, so the stage's command runs even if DVC has its result."""
        return self._reproduced([target], force=True, single_item=True)

    def stage(self, name: str, *arguments: str) -> None:
        with self.entered():
            self.call(f"python -m stages.{name} {shlex.join(arguments)}")

    @contextlib.contextmanager
    def entered(self) -> Iterator[pytest.MonkeyPatch]:
        with pytest.MonkeyPatch.context() as patch, contextlib.chdir(self.path):
            yield patch

    def command(self, executable: str, command: str, **options) -> None:
        """Replaces DVC's own start of a shell."""
        self.commands.append(command)
        self.call(command)

    def call(self, command: str) -> None:
        _, _, module, *arguments = shlex.split(command)
        names = (name.removeprefix("--") for name in arguments[::2])
        stage = importlib.import_module(module)
        stage.run(config.load(), **dict(zip(names, arguments[1::2], strict=True)))
