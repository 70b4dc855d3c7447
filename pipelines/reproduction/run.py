"""Takes DVC through its plan: what is out of date runs, several stages at a time.

Graph, cache, dvc.lock and the decision what is out of date are DVC's own.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator

from pipelines.errors import UserError
from pipelines.reproduction import side_by_side, warm
from pipelines.reproduction.blocks import OUT, Blocks, to_this_process
from pipelines.reproduction.hashed_once import hashed_once
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
# the stages that enter releases in ledgers
CHARGING = {"joint_release", "train_generator", "train_dp_baseline"}


def reproduce(targets: list[str], jobs: int) -> int:
    """Runs the stages that are out of date, and returns how many ran.

    Args:
        targets: The names of stages; none: all.
        jobs: How many may run at a time.

    Raises:
        UserError: A stage failed, or DVC refused.
        KeyboardInterrupt: Ctrl-C was pressed, and no stage said so.
    """
    # takes a second to import, and is only needed once the parameters are known to be valid
    from dvc.exceptions import DvcException
    from dvc.repo import Repo, lock_repo
    from dvc.repo.reproduce import get_active_graph

    try:
        with (
            parsed_once(),
            hashed_once(),
            Repo() as repo,
            _quiet(),
            lock_repo(repo),
            repo.scm_context(quiet=True),
        ):
            # without the edges of frozen stages, whose inputs are not made
            graph = get_active_graph(repo.index.graph)
            run = _Run(_plan(repo, graph, targets), graph, jobs)
            with _own_ways(run):
                run.all(side_by_side.Turn(repo.lock))
        return run.count
    except DvcException as error:
        raise UserError(_reason(error)) from None


class _Run:
    """Is one run, with its progress.

    Args:
        stages: DVC's, in the order of the plan.
        graph: DVC's: edges lead from a stage to those that it needs.
        jobs: How many stages may run at a time.
    """

    def __init__(self, stages: list, graph, jobs: int):
        self.stages = stages
        self.graph = graph
        self.jobs = jobs
        self.names = [stage.addressing for stage in stages]
        self.progress = Progress(self.names, jobs)
        self.blocks = Blocks(to_this_process)
        self.turn: side_by_side.Turn | None = None
        self.count = 0

    def all(self, turn: side_by_side.Turn) -> None:
        """Takes each stage of the plan. DVC holds its own lock before and after."""
        self.turn = turn
        turn.lock.unlock()
        try:
            side_by_side.run(needs(self.stages, self.graph), self.one, self.jobs, turn)
        finally:
            turn.lock.lock()

    def one(self, stage) -> None:
        """Has DVC look at a stage, and run it if it is out of date."""
        from dvc.exceptions import ReproductionError
        from dvc.repo.reproduce import _reproduce_stage

        self.progress.look()
        upstream = list(self.graph.successors(stage))
        try:
            ran = _reproduce_stage(stage, upstream=upstream, interactive=False)
        except Exception as error:
            raise ReproductionError(f"failed to reproduce '{stage.addressing}'") from error
        self.progress.end(stage.addressing)
        self.count += bool(ran)

    def command(self, executable: str, command: str, *, cwd: str, env: dict, **options) -> None:
        """Takes the place of DVC's start of a shell."""
        from dvc.stage.exceptions import StageCmdFailedError

        name = env["DVC_STAGE"]

        def say(stream: int, content: bytes) -> None:
            self.blocks.say(name, stream, content)

        self.blocks.begin(name)
        try:
            say(OUT, f"{self.progress.start(name)}\n".encode())
            status = warm.run(warm.stage_of(command), env, cwd, say, self.turn.given_away())
            say(OUT, b"\n")
        finally:
            self.blocks.end(name)
        if status:
            raise StageCmdFailedError(command, status)


def _plan(repo, graph, targets: list[str]) -> list:
    """Returns the stages in the order of DVC's plan for the whole graph.

    For targets alone, DVC's order changes from process to process.
    """
    from dvc.repo.reproduce import collect_stages, plan_repro

    everything = plan_repro(graph)
    if not targets:
        return everything
    wanted = set(plan_repro(graph, collect_stages(repo, targets)))
    return [stage for stage in everything if stage in wanted]


@contextlib.contextmanager
def _own_ways(run: _Run) -> Iterator[None]:
    """Has DVC start stages and write dvc.lock in ways of ours, until the block ends."""
    from dvc.stage import run as starter

    with contextlib.ExitStack() as stack:
        stack.enter_context(lock_in_pieces(run.names))
        if warm.can_fork() and all(warm.stage_of(stage.cmd) for stage in run.stages if stage.cmd):
            stack.enter_context(_replaced(starter, "_run", run.command))
        yield


@contextlib.contextmanager
def _replaced(module, name: str, function: Callable) -> Iterator[None]:
    """Has DVC call another function."""
    before = getattr(module, name)
    setattr(module, name, function)
    try:
        yield
    finally:
        setattr(module, name, before)


def needs(stages: list, graph) -> dict:
    """Returns {stage: those before it in the plan that must end first}, in the order of the plan.

    A release waits for those before it that enter the same ledger. Which of them a cap still allows
    follows from the plan, not from which is faster. A data set waits for the one before it: both
    read and write in the folder of raw files.

    Args:
        stages: DVC's, in the order of the plan.
        graph: DVC's: edges lead from a stage to those that it needs.
    """
    waits_for = {}
    users: list[tuple[object, tuple[str | None, ...]]] = []
    for stage in stages:
        waits_for[stage] = set(graph.successors(stage))
        used = _used(stage.cmd)
        if used:
            waits_for[stage] |= {user for user, theirs in users if _overlap(used, theirs)}
            users.append((stage, used))
    return waits_for


def _used(command: object) -> tuple[str | None, ...] | None:
    """Returns what stages use one at a time, None standing for any: raw files, or ledgers.

    Args:
        command: Of a stage.
    """
    module, *arguments = warm.stage_of(command) or [""]
    kind = module.removeprefix("stages.")
    if kind == "prepare":
        return ("raw",)
    if kind not in CHARGING:
        return None
    names = (name.removeprefix("--") for name in arguments[::2])
    values = dict(zip(names, arguments[1::2]))
    return ("ledgers", values.get("dataset"), values.get("client"))


def _overlap(some: tuple[str | None, ...], others: tuple[str | None, ...]) -> bool:
    """Returns whether two stages may use the same; None stands for any."""
    return all(one == other or None in (one, other) for one, other in zip(some, others))


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
