"""Tests that each stage's lines stay together, with streams and bars as if it ran alone."""

import fcntl
import os
import struct
import subprocess
import sys
import termios

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import ROOT

from pipelines.reproduction.blocks import ERR, OUT, Blocks


class Shown:
    def __init__(self):
        self.parts: list[tuple[int, bytes]] = []

    def __call__(self, stream: int, content: bytes) -> None:
        self.parts.append((stream, content))

    @property
    def text(self) -> bytes:
        return b"".join(content for _, content in self.parts)


def test_the_first_is_shown_at_once_and_the_next_when_it_has_ended():
    shown = Shown()
    blocks = Blocks(shown)
    blocks.begin("a")
    blocks.begin("b")
    blocks.say("b", OUT, b"b1 ")
    blocks.say("a", OUT, b"a1 ")
    assert shown.text == b"a1 "
    blocks.say("a", ERR, b"a2 ")
    blocks.end("a")
    assert shown.parts == [(OUT, b"a1 "), (ERR, b"a2 "), (OUT, b"b1 ")]
    blocks.say("b", OUT, b"b2 ")
    assert shown.text.endswith(b"b1 b2 ")


@given(st.lists(st.integers(0, 3), max_size=40), st.permutations(range(4)))
def test_whatever_the_order_each_block_is_whole_and_they_follow_their_beginnings(said, ends):
    shown = Shown()
    blocks = Blocks(shown)
    for block in range(4):
        blocks.begin(block)
    expected = dict.fromkeys(range(4), b"")
    for number, block in enumerate(said):
        line = f"{block}:{number} ".encode()
        blocks.say(block, OUT, line)
        expected[block] += line
    for block in ends:
        blocks.end(block)
    assert shown.text == b"".join(expected.values())
    assert not blocks.kept


PROGRAM = """
import contextlib, sys
from pipelines.reproduction import warm
from pipelines.reproduction.blocks import to_this_process
warm.run(["stages.toy"], {}, sys.argv[1], to_this_process, contextlib.nullcontext())
"""


@pytest.fixture
def toy(tmp_path):
    """Returns a function that makes a stage of this code, and the command that forks it."""

    def make(code: str) -> list[str]:
        (tmp_path / "stages").mkdir()
        (tmp_path / "stages/__init__.py").touch()
        (tmp_path / "stages/toy.py").write_text(code)
        return [sys.executable, "-c", PROGRAM, str(tmp_path)]

    return make


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def test_the_two_streams_of_a_stage_stay_two(toy):
    command = toy("import sys; print('out'); print('err', file=sys.stderr)")
    done = subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, text=True, capture_output=True)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_streams_that_lead_to_one_place_keep_their_order(toy):
    code = (
        "import sys\n"
        "for number in range(50):\n"
        "    print(number, file=sys.stderr if number % 2 else sys.stdout, flush=True)\n"
    )
    done = subprocess.run(
        toy(code),
        env=ENVIRONMENT,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.stdout.split() == [str(number) for number in range(50)]


def test_a_megabyte_without_a_line_break_arrives(toy):
    command = toy("print('x' * (1 << 20), end='')")
    done = subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, capture_output=True)
    assert done.stdout == b"x" * (1 << 20)


def test_a_process_that_a_stage_leaves_behind_does_not_hold_up_the_run(toy):
    code = "import subprocess; subprocess.Popen(['sleep', '60']); print('done')"
    # the one left behind holds the stage's streams, and not those of the run
    done = subprocess.run(
        toy(code), env=ENVIRONMENT, cwd=ROOT, text=True, capture_output=True, timeout=30
    )
    assert done.stdout == "done\n"


def test_a_stage_sees_a_terminal_of_the_same_size_where_there_is_one(toy):
    code = (
        "import os, sys\n"
        "print(sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size(2).columns)\n"
    )
    reader, writer = os.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("4H", 30, 77, 0, 0))
    done = subprocess.Popen(toy(code), env=ENVIRONMENT, cwd=ROOT, stdout=writer, stderr=writer)
    os.close(writer)
    with open(reader, "rb", buffering=0) as terminal:
        assert terminal.readline() == b"True True 77\r\n"
    assert done.wait() == 0


def test_nobody_who_reads_ends_the_run_and_the_stage(toy):
    code = "import time\nwhile True:\n    print('x' * 1000, flush=True)\n    time.sleep(0.01)\n"
    command = toy(code)
    started = subprocess.Popen(
        command, env=ENVIRONMENT, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    started.stdout.read(1000)
    started.stdout.close()
    _, said = started.communicate(timeout=30)
    assert started.returncode and b"Broken pipe" in said
