"""Real DVC and real stages in this process: only the start of a Python per stage is saved, most of
a tiny stage's time.

Graph, cache, dvc.lock, run cache, push, `dvc exp save` are DVC's own; the command `python -m
stages.NAME --ARGUMENT VALUE` becomes a call of that stage's `run`. How a stage ends for a user, and
what a fresh process knows, is for `project.Project`, which starts one.
"""

import contextlib
import importlib
import shlex
from collections.abc import Iterator

import pytest
from dvc.repo import Repo
from project import Project

from pipelines import config


class Within(Project):
    """A project whose stages run here."""

    def repro(self, *targets: str) -> list[str]:
        """`dvc repro`. Names of the stages whose command ran."""
        return self._reproduced(list(targets) or None)

    def _reproduced(self, targets: list[str] | None, **options: bool) -> list[str]:
        self.commands = []
        with self.entered() as patch, Repo(str(self.path)) as repo:
            patch.setattr("dvc.stage.run._run", self.command)
            repo.reproduce(targets, **options)
            names = {stage.cmd: stage.name for stage in repo.index.stages}
        return [names[command] for command in self.commands]

    def forced(self, target: str) -> list[str]:
        """`dvc repro -f -s`: the stage's command runs, whatever DVC has of it."""
        return self._reproduced([target], force=True, single_item=True)

    def stage(self, name: str, *arguments: str) -> None:
        with self.entered():
            self.call(f"python -m stages.{name} {shlex.join(arguments)}")

    @contextlib.contextmanager
    def entered(self) -> Iterator[pytest.MonkeyPatch]:
        with pytest.MonkeyPatch.context() as patch, contextlib.chdir(self.path):
            yield patch

    def command(self, executable: str, command: str, **options) -> None:
        """In the place of DVC's own start of a shell."""
        self.commands.append(command)
        self.call(command)

    def call(self, command: str) -> None:
        _, _, module, *arguments = shlex.split(command)
        names = (name.removeprefix("--") for name in arguments[::2])
        stage = importlib.import_module(module)
        stage.run(config.load(), **dict(zip(names, arguments[1::2], strict=True)))
