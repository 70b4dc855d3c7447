"""Tests a writer that dies, or a disk that is full, twice in a row at any point.

The ledger goes on and has lost nothing.
"""

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from ledgers import DELTA, calls_of, check_sound, killed, on_a_full_disk, release
from project import ENV, ROOT

from pipelines.privacy.ledger import Ledger, LedgerError

WAYS = {"killed": killed, "disk full": on_a_full_disk}


def enter(path, seed):
    Ledger(path, delta=DELTA).open(release(seed=seed))


def begun(folder, releases) -> Path:
    """Makes a ledger with so many finished releases."""
    path = folder / "own/c0.jsonl"
    for seed in range(releases):
        enter(path, f"before {seed}")
        Ledger(path, delta=DELTA).close(release(seed=f"before {seed}").fingerprint)
    folder.mkdir(exist_ok=True)
    return path


def points(folder, scratch, seed) -> list[tuple[int, bool]]:
    """Returns (number of a call, whether half of it is done): where entering a release in a copy of
    this ledger may fail.
    """
    shutil.copytree(folder, scratch)
    calls = calls_of(partial(enter, scratch / "own/c0.jsonl", seed))
    shutil.rmtree(scratch)
    halves = [(number, True) for number, (name, _) in enumerate(calls, start=1) if name == "write"]
    return sorted([*((number, False) for number in range(1, len(calls) + 2)), *halves])


def content(folder) -> tuple:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return tuple((str(file.relative_to(folder)), file.read_bytes()) for file in files)


def failed_once(folder, tmp_path, fail) -> list[Path]:
    """Makes one copy of the ledger for each different state that a failure can leave."""
    found = {}
    for number, half in points(folder, tmp_path / "scratch", "one"):
        state = tmp_path / f"state-{number}-{half}"
        shutil.copytree(folder, state)
        fail(partial(enter, state / "own/c0.jsonl", "one"), number, half)
        found.setdefault(content(state), state)
    return list(found.values())


# a process dies at hundreds of points: half a minute for each number of releases before
@pytest.mark.parametrize(
    ("way", "releases"),
    [
        pytest.param("killed", 0, marks=pytest.mark.slow),
        ("killed", 1),
        ("disk full", 0),
        ("disk full", 1),
    ],
)
def test_two_failures_in_a_row_at_any_point_leave_a_sound_ledger(tmp_path, way, releases):
    folder, fail = tmp_path / "start", WAYS[way]
    path = begun(folder, releases)
    acknowledged = Ledger(path, delta=DELTA).entries()
    states = failed_once(folder, tmp_path, fail)
    # at least: no line, a part of it in one of the two ways, the line, an empty, a torn and a whole head beside, all
    assert len(states) >= 6
    for state in states:
        for number, half in points(state, tmp_path / "scratch", "two"):
            twice = tmp_path / "twice"
            shutil.copytree(state, twice)
            fail(partial(enter, twice / "own/c0.jsonl", "two"), number, half)
            check_sound(twice / "own/c0.jsonl", acknowledged)
            shutil.rmtree(twice)


def test_every_step_from_the_line_to_the_head_is_one_at_which_a_failure_was_tried(tmp_path):
    """The order is checked, too: each step is on the disk before the next begins."""
    path = begun(tmp_path / "start", 1)
    calls = calls_of(partial(enter, path, "one"))
    files = {path: "line", path.with_suffix(".tmp"): "head beside", path.parent: "folder"}
    opened, steps = None, []
    for name, arguments in calls:
        opened = files[arguments[0]] if name == "open" else opened
        steps.append(f"{name} {opened}")
    beside = [
        "open head beside",
        "write head beside",
        "fsync head beside",
        "close head beside",
        "replace head beside",
    ]
    assert steps == [
        *("open line", "write line", "fsync line", "close line"),
        *beside,
        *("open folder", "fsync folder", "close folder"),
    ]


def test_the_first_line_makes_the_names_of_file_and_folder_last(tmp_path):
    path = tmp_path / "own/c0.jsonl"
    flushed = [
        arguments[0] for name, arguments in calls_of(partial(enter, path, "one")) if name == "open"
    ]
    assert {path, path.parent, path.parent.parent} <= set(flushed)


def test_a_run_that_died_between_line_and_head_is_no_tampering(tmp_path):
    path = begun(tmp_path, 1)
    head = path.with_suffix(".head").read_text()
    enter(path, "one")
    path.with_suffix(".head").write_text(head)
    assert len(Ledger(path, delta=DELTA).entries()) == 3
    enter(path, "two")
    assert json.loads(path.with_suffix(".head").read_text())["lines"] == 4


def test_a_head_two_lines_behind_is_named_and_says_what_to_do(tmp_path):
    path = begun(tmp_path, 1)
    behind = path.with_suffix(".head").read_text()
    enter(path, "one")
    enter(path, "two")
    ahead = path.with_suffix(".head").read_text()
    path.with_suffix(".head").write_text(behind)
    with pytest.raises(LedgerError, match="2 lines were written, 4 are there") as error:
        enter(path, "three")
    told = str(error.value)
    assert told.endswith(f"write this into c0.head: {ahead.strip()}")
    path.with_suffix(".head").write_text(told.partition("into c0.head: ")[2])
    enter(path, "three")


def test_a_torn_last_line_of_a_dead_writer_is_dropped(tmp_path):
    path = begun(tmp_path, 1)
    with path.open("a") as file:
        file.write('{"event":"open","finger')
    enter(path, "one")
    assert len(Ledger(path, delta=DELTA).entries()) == 3


def test_a_confirmed_line_that_lost_its_newline_is_not_taken_for_a_torn_one(tmp_path):
    """An editor may remove the newline.

    Removing the line would make an edit that can be undone one that cannot.
    """
    path = begun(tmp_path, 1)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(LedgerError, match="the end was cut off"):
        enter(path, "one")
    assert path.read_bytes() == whole[:-1]


def test_two_entries_on_a_really_full_disk_leave_a_sound_ledger(tmp_path):
    """The disk is a tmpfs in a mount namespace of its own, which goes with the process."""
    mount = f"mount -t tmpfs -o size=64k none {tmp_path}"
    ways = (["unshare", "-rm"], ["unshare", "-m"])
    allowed = [
        way for way in ways if shutil.which("unshare") and _succeeds([*way, "sh", "-c", mount])
    ]
    if not allowed:
        pytest.skip("this machine lets nobody mount a file system")
    script = f"{mount} && {sys.executable} {ROOT / 'tests/full_disk.py'} {tmp_path}"
    env = {**ENV, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    done = subprocess.run(
        [*allowed[0], "sh", "-c", script], cwd=ROOT, env=env, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    full = "No space left on device"
    assert [
        full,
        "2 lines",
        full,
        "2 lines",
    ] in found  # no line fits, or a part that was taken back
    assert [full, "3 lines", full, "3 lines"] in found  # the line fits and the head does not
    assert ["new", "3 lines", "new", "4 lines"] in found


def _succeeds(command) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0
