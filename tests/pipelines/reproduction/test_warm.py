"""Tests that a forked stage is what `python -m` would have been, and that no two share their noise.

The forks are made in fresh processes: a test's own has threads.
"""

import os
import subprocess
import sys

import pytest
from project import ROOT

from pipelines.reproduction import warm
from pipelines.reproduction.warm import stage_of

RUN = """
import contextlib, sys, threading
from pipelines.reproduction import warm
from pipelines.reproduction.blocks import to_this_process
warm.LIBRARIES = {"toy": ("wave",)}

def twice():
    for _ in range(2):
        command = ["stages.toy", "--name", "a b"]
        beside = contextlib.nullcontext()
        status = warm.run(command, {"ONLY": "this"}, sys.argv[1], to_this_process, beside)
        print("status", status, "wave" in sys.modules, flush=True)

thread = threading.Thread(target=twice)
thread.start()
thread.join()
"""


def forked(folder, code: str, program: str = RUN) -> subprocess.CompletedProcess:
    """Runs a stage of this code twice, from a process that imports this project."""
    (folder / "stages").mkdir(exist_ok=True)
    (folder / "stages/__init__.py").touch()
    (folder / "stages/toy.py").write_text(code)
    return subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        capture_output=True,
        cwd=ROOT,
    )


def test_a_fork_has_the_arguments_the_environment_and_the_folder_of_a_process_of_its_own(tmp_path):
    code = (
        '"""What a help text says."""\n'
        "import os, sys\n"
        "main = sys.modules['__main__']\n"
        "print(__name__, main.__doc__, main.__spec__.name, sys.argv[1:], dict(os.environ), os.getcwd())\n"
        "print('wave' in sys.modules, [n for n in sys.modules if n.startswith('pipelines')])\n"
    )
    done = forked(tmp_path, code)
    expected = (
        f"__main__ What a help text says. stages.toy ['--name', 'a b'] {{'ONLY': 'this'}} {tmp_path}\n"
        "True []\nstatus 0 True\n"
    )
    assert done.stdout == expected * 2 and done.stderr == ""


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('Error: a sentence.')", 1, "Error: a sentence.\n"),
        ("raise SystemExit()", 0, ""),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
    ],
)
def test_a_fork_ends_as_a_process_does(tmp_path, code, status, said):
    done = forked(tmp_path, code)
    assert done.stdout == f"status {status} True\n" * 2
    assert done.stderr.endswith(said) and bool(done.stderr) == bool(said)


def test_a_fork_leaves_nothing_behind_and_runs_the_code_that_lies_on_disk(tmp_path):
    """The first rewrites itself, and both would see what the other left in a module."""
    code = (
        "import pathlib, json\n"
        "print('first', hasattr(json, 'mark'))\n"
        "json.mark = 1\n"
        'pathlib.Path(__file__).write_text(\'import json; print("second", hasattr(json, "mark"))\')\n'
    )
    done = forked(tmp_path, code)
    assert done.stdout.splitlines()[::2] == ["first False", "second False"]


def test_a_fork_that_cannot_begin_never_goes_on_as_a_second_run(tmp_path):
    program = (
        "from pipelines.reproduction import warm\n"
        "def no(ends):\n"
        "    raise OSError('no streams')\n"
        "warm.Ends.take = no\n" + RUN
    )
    done = forked(tmp_path, "print('never')", program)
    assert done.stdout == "status 1 True\n" * 2 and "no streams" in done.stderr


def test_two_forks_draw_different_noise(tmp_path):
    code = (
        "from pipelines.privacy.noise import OsEntropy\n"
        "print(OsEntropy().discrete_gaussian((8,), 1e6).tolist())\n"
    )
    done = forked(tmp_path, code)
    first, _, second, _ = done.stdout.splitlines()
    assert first.startswith("[") and first != second, done.stderr


def test_a_process_that_loaded_the_source_of_noise_does_not_fork():
    program = (
        "from pipelines.reproduction import warm\n"
        "print(warm.can_fork())\n"
        "import opendp\n"
        "print(warm.can_fork())\n"
        "warm.run(['stages.toy'], {}, '.', print, None)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, text=True, capture_output=True)
    assert done.stdout.split() == ["True", "False"]
    assert "whose noise two stages must not share" in done.stderr


def test_no_library_of_a_stage_loads_the_source_of_noise():
    libraries = {name for names in warm.LIBRARIES.values() for name in names}
    imports = "; ".join(f"import {name}" for name in sorted(libraries))
    program = f"import sys; import pipelines.reproduction.__main__; {imports}; print('opendp' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, text=True, capture_output=True, check=True
    )
    assert done.stdout.split()[-1] == "False"


@pytest.mark.parametrize(
    "command",
    [
        "python -m stages.report && true",
        "python -m stages.report > out",
        "python -m pipelines.guard",
        "sh -c 'python -m stages.report'",
        "python -m stages.$NAME",
        # of `dvc add`, and of several commands
        None,
        ["python -m stages.report"],
    ],
)
def test_what_is_no_plain_stage_is_left_to_a_shell(command):
    assert stage_of(command) is None


def test_the_commands_of_the_pipeline_are_plain_stages():
    from dvc.repo import Repo

    with Repo(str(ROOT)) as repo:
        commands = [stage.cmd for stage in repo.index.stages]
    assert len(commands) > 10 and all(map(stage_of, commands))
