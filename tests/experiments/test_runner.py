"""Tests that params.yaml is restored after a failure, an interruption and a success.

DVC, and what runs the stages, are a stand-in here.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from project import ENV, GIT, ROOT

from experiments import runner
from experiments.plans import Run
from pipelines.errors import UserError

BEFORE = "seed: 7  # a comment\n"
RUN = Run("own", 3, "", {"seed": 3}, ("report",), ())
DVC = """
import pathlib, signal, sys, time
with open("calls", "a") as out: print(*sys.argv[1:], file=out)
if sys.argv[2] == "remove": sys.exit(1)
if sys.argv[1] == "exp": sys.exit()
assert pathlib.Path("params.yaml").read_text().startswith("seed: 3")
print("[1/2] fine_tune@own-gan, about 80 s left")
{rest}
"""


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(BEFORE)
    for command in (["init", "-q"], ["add", "params.yaml"], ["commit", "-qm", "start"]):
        subprocess.run([*GIT, *command], check=True, capture_output=True)
    return tmp_path


def stand_in(monkeypatch, rest: str) -> None:
    Path("stand_in.py").write_text(DVC.format(rest=rest))
    monkeypatch.setattr(runner, "DVC", [sys.executable, "stand_in.py"])
    monkeypatch.setattr(runner, "REPRODUCTION", [sys.executable, "stand_in.py", "repro"])


def test_a_good_run_shows_its_stages_and_leaves_the_parameters_as_they_were(project, monkeypatch):
    stand_in(monkeypatch, "")
    shown = []
    with runner.restored():
        runner.reproduce("t", RUN, shown.append)
        assert Path("params.yaml").read_text() == BEFORE.replace("7", "3")
    assert Path("params.yaml").read_text() == BEFORE
    assert shown == ["fine_tune@own-gan"]
    assert Path("calls").read_text().splitlines() == [
        "exp remove t",
        "repro report",
        "exp run --name t -S seed=3 report",
    ]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "print('Error: The budget buys 3 steps.'); print('ERROR: failed to reproduce')",
            "The budget buys 3 steps.",
        ),
        ("print('ERROR: failed to reproduce x: y')", "failed to reproduce x: y"),
        ("", "it said nothing of why."),
    ],
)
def test_a_failing_run_is_one_sentence_and_the_parameters_are_back(
    project, monkeypatch, said, sentence
):
    stand_in(monkeypatch, f"{said}; sys.exit(3)" if said else "sys.exit(3)")
    with pytest.raises(UserError) as error, runner.restored():
        runner.reproduce("t", RUN, lambda stage: None)
    assert (
        str(error.value)
        == f"t failed: {sentence} All that was said is in .scratch/experiments/t.log."
    )
    assert "[1/2]" in Path(".scratch/experiments/t.log").read_text()
    assert Path("params.yaml").read_text() == BEFORE


def test_an_interruption_reaches_dvc_which_ends_before_the_parameters_are_back(
    project, monkeypatch
):
    """The signal goes to our process alone, as `kill` sends it; a terminal's Ctrl-C ends the same way."""
    slow = "try: time.sleep(60)\nexcept KeyboardInterrupt:\n    pathlib.Path('params.yaml').write_text('late')"
    stand_in(monkeypatch, f"sys.stdout.flush()\n{slow}\n    pathlib.Path('ended').touch()")
    code = (
        "import signal, sys; from experiments import plans, runner\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a suite in the background has it ignored
        "runner.DVC, runner.REPRODUCTION = [sys.executable, 'stand_in.py'], [sys.executable, 'stand_in.py', 'repro']\n"
        "run = plans.Run('own', 3, '', {'seed': 3}, ('report',), ())\n"
        "with runner.restored(): runner.reproduce('t', run, lambda stage: open('begun', 'w').close())"
    )
    ours = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**ENV, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not Path("begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    ours.send_signal(signal.SIGINT)
    said = ours.communicate(timeout=60)[1]
    assert ours.returncode != 0 and "KeyboardInterrupt" in said
    assert Path("ended").exists() and Path("params.yaml").read_text() == BEFORE


def test_what_a_killed_dvc_has_staged_is_not_taken_for_the_users(project, monkeypatch):
    stand_in(
        monkeypatch,
        f"import subprocess; subprocess.run({[*GIT, 'add', 'params.yaml']}); sys.exit(1)",
    )
    with pytest.raises(UserError), runner.restored():
        runner.reproduce("t", RUN, lambda stage: None)
    runner.check_committed()


def test_a_run_in_the_background_of_a_script_can_be_ended():
    """A background process ignores SIGINT, and DVC would inherit that.

    It could then not be ended.
    """
    ask = "import os, runpy, signal, subprocess, sys; sys.argv = ['experiments', '-h']\n"
    ask += "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    ask += "try: runpy.run_module('experiments', run_name='__main__')\nexcept SystemExit: pass\n"
    ask += "child = [sys.executable, '-c', 'import signal; print(signal.getsignal(2))']\n"
    ask += "print(subprocess.run(child, capture_output=True, text=True).stdout)"
    done = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True)
    assert "default_int_handler" in done.stdout, done.stderr


def test_uncommitted_parameters_are_refused_and_committed_ones_are_not(project):
    runner.check_committed()
    Path("params.yaml").write_text("seed: 8\n")
    with pytest.raises(UserError, match=r"^params.yaml has changes that are not committed"):
        runner.check_committed()
    subprocess.run([*GIT, "add", "params.yaml"], check=True)
    with pytest.raises(UserError, match="not committed"):  # staged is not committed
        runner.check_committed()


def test_without_a_repository_it_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    Path("params.yaml").write_text(BEFORE)
    with pytest.raises(UserError, match="Git repository"):
        runner.check_committed()
