"""Runs what is out of date: `dvc repro` with progress, and with stages that start at once.

    python -m pipelines.reproduction [TARGET ...]

It checks the parameters and the folder of raw files, mends what a crash left torn, and runs DVC.
Graph, cache and dvc.lock are DVC's own. Only the start of a stage differs (`warm`).
"""

import argparse
import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from pipelines import config, releases
from pipelines.datasets import raw_files
from pipelines.errors import UserError, told_in_a_sentence
from pipelines.plan import spent
from pipelines.recover import recovery
from pipelines.reproduction import warm
from pipelines.reproduction.lock_pieces import lock_in_pieces
from pipelines.reproduction.parsed_once import parsed_once
from pipelines.reproduction.progress import Progress

# what DVC says of each stage, which the counted line says better
SAID_HERE = (
    "Running stage",
    "Stage '%s' didn't change",
    "%s %s",
    "Updating lock file",
    "Generating lock",
)


def reproduce(targets: list[str]) -> int:
    """Runs the stages that are out of date, and returns how many ran.

    Args:
        targets: The names of stages; none: all.

    Raises:
        UserError: A stage failed, or DVC refused.
    """
    # takes a second to import, and is only needed once the parameters are known to be valid
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from dvc.repo.reproduce import _reproduce_stage
    from dvc.stage.exceptions import StageCmdFailedError

    try:
        with parsed_once(), lock_in_pieces(), Repo() as repo, _quiet():
            names = [stage.addressing for stage in _steps(repo, targets)]
            progress = Progress(names)
            by_command = {stage.cmd: stage.addressing for stage in repo.index.stages}

            def look(stage, **arguments):
                progress.look(stage.addressing)
                return _reproduce_stage(stage, **arguments)

            def run(executable: str, command: str, *, cwd: str, env: dict, **options) -> None:
                name = by_command[command]
                progress.start(name)
                status = warm.run(warm.stage_of(command), env, cwd)
                if status:
                    raise StageCmdFailedError(command, status)
                progress.end(name)

            forks = warm.can_fork() and all(map(warm.stage_of, by_command))
            with _in_place_of_a_shell(run) if forks else contextlib.nullcontext():
                return len(repo.reproduce(targets or None, repro_fn=look))
    except DvcException as error:
        raise UserError(_reason(error)) from None


@contextlib.contextmanager
def _in_place_of_a_shell(run: Callable) -> Iterator[None]:
    """Has DVC call a function where it starts a command in a shell."""
    from dvc.stage import run as starter

    before = starter._run
    starter._run = run
    try:
        yield
    finally:
        starter._run = before


def _steps(repo, targets: list[str]) -> list:
    """Returns the stages in the order in which DVC looks at them."""
    from dvc.repo.reproduce import collect_stages, get_active_graph, plan_repro

    stages = collect_stages(repo, targets or ["dvc.yaml"], recursive=False, glob=False)
    return plan_repro(get_active_graph(repo.index.graph), stages)


def _reason(error: Exception) -> str:
    """Returns what DVC says of an error, and of the one that caused it."""
    causes = []
    while error is not None:
        causes.append(str(error).rstrip("."))
        error = error.__cause__
    return ": ".join(filter(None, causes)) + "."


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Leaves out of DVC's lines those that the counted line says."""
    logger = logging.getLogger("dvc")

    def others(record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith(SAID_HERE)

    handlers = list(logger.handlers)
    for handler in handlers:
        handler.addFilter(others)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(others)


def main() -> None:
    """Reads the command line, checks what can be checked, and runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", help="names of stages; all where there is none")
    targets = parser.parse_args().targets
    with told_in_a_sentence():
        params = config.load()
        raw_files.check(Path(params.prepare.root))
        mended = recovery.recover()
        if mended:
            print(f"Recovered: {'; '.join(mended)}. {recovery.proof()}")
        ran = reproduce(targets)
        print("Nothing has changed: no stage had to run." if not ran else "")
        with releases.as_user_error():
            print("\n".join(spent.lines(params)))
        print(
            "To send what may leave, use 'make push': it asks the guard first, and a bare "
            "'dvc push' asks nobody."
        )


if __name__ == "__main__":
    main()
