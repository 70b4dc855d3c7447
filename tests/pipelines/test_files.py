"""Outputs appear whole or not at all, and trouble is one sentence."""

import hashlib
import json
import math
import os
import signal
import subprocess
import sys
from subprocess import PIPE

import pytest
from project import ROOT

from pipelines import files, scratch
from pipelines.errors import UserError


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def leftovers(project):
    scratch = project / ".scratch" / "partial"
    return [path.name for path in scratch.iterdir()] if scratch.exists() else []


def test_a_folder_appears_only_when_the_block_has_ended(project):
    out = project / "data" / "deep" / "out"
    with files.new_folder(out) as folder:
        (folder / "a.txt").write_text("x")
        assert not out.exists()
    assert (out / "a.txt").read_text() == "x" and leftovers(project) == []


def test_a_relative_path_works_and_the_working_folder_stays_clean(project):
    from pathlib import Path

    with files.new_folder(Path("data/out")) as folder:
        (folder / "a.txt").write_text("x")
        assert sorted(path.name for path in project.iterdir()) == [".scratch"]
    assert (project / "data/out/a.txt").exists()


@pytest.mark.parametrize("trouble", [ValueError, KeyboardInterrupt, UserError, SystemExit])
@pytest.mark.parametrize("before", [False, True])
def test_any_exception_leaves_nothing_and_keeps_what_was_there(project, trouble, before):
    out = project / "out"
    if before:
        out.mkdir()
        (out / "old.txt").write_text("old")
    with pytest.raises(trouble), files.new_folder(out) as folder:
        (folder / "half.txt").write_text("x")
        raise trouble
    assert leftovers(project) == []
    assert [path.name for path in out.iterdir()] == ["old.txt"] if before else not out.exists()


def test_a_full_disk_is_one_sentence_and_leaves_nothing(project):
    with pytest.raises(UserError) as error, files.new_folder(project / "out") as folder:
        (folder / "half.txt").write_text("x")
        with open("/dev/full", "w") as full:
            full.write("x")
    assert "No space left" in str(error.value) and "\n" not in str(error.value)
    assert leftovers(project) == [] and not (project / "out").exists()


def test_an_unwritable_place_is_one_sentence(project):
    (project / "file").write_text("in the way")
    with (
        pytest.raises(UserError, match=r"Could not write .*file/out"),
        files.new_folder(project / "file" / "out"),
    ):
        pass
    assert leftovers(project) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_one_sentence(project):
    (project / "locked").mkdir(mode=0o500)
    with (
        pytest.raises(UserError, match="Permission denied"),
        files.new_folder(project / "locked" / "out"),
    ):
        pass


def test_an_old_folder_is_replaced_whole(project):
    for name in ("first", "second"):
        with files.new_folder(project / "out") as folder:
            (folder / name).write_text("x")
    assert [path.name for path in (project / "out").iterdir()] == ["second"]


WRITER = """
import sys
from pathlib import Path
from pipelines.files import new_folder
with new_folder(Path("theirs")) as folder:
    (folder / "record.txt").write_text("private")
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(project):
    """Returns a factory of processes that are in the middle of a new folder."""
    running = []

    def start():
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", WRITER]
        running.append(
            subprocess.Popen(
                command, cwd=project, env=environment, stdin=PIPE, stdout=PIPE, text=True
            )
        )
        assert running[-1].stdout.readline() == "writing\n"
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def records(project):
    return len([*(project / ".scratch/partial").rglob("record.txt")])


def test_leftovers_of_killed_runs_are_removed_and_a_live_ones_folder_is_not(project, writer):
    dead, live = writer(), writer()
    dead.kill()
    dead.wait()
    assert records(project) == 2
    with files.new_folder(project / "ours") as folder:
        assert list(folder.iterdir()) == []
        assert records(project) == 1
    live.communicate("")
    assert live.returncode == 0 and (project / "theirs/record.txt").read_text() == "private"
    assert leftovers(project) == []


def test_a_leftover_without_a_lock_is_removed(project):
    stale = project / ".scratch/partial/models.private.x.4711"
    stale.mkdir(parents=True)
    (stale / "record.txt").write_text("x")
    with files.new_folder(project / "ours"):
        assert records(project) == 0


def test_two_folders_of_one_process_do_not_take_each_other_for_dead(project):
    with files.new_folder(project / "outer") as outer:
        (outer / "a.txt").write_text("x")
        with files.new_folder(project / "inner"):
            pass
    assert (project / "outer/a.txt").exists()


REPLACER = """
import os, signal
from pathlib import Path
from pipelines.files import new_folder
replace, renamed = os.replace, []
def killed(*names):
    if len(renamed) == DONE:
        os.kill(os.getpid(), signal.SIGKILL)
    renamed.append(replace(*names))
os.replace = killed
with new_folder(Path("data/out")) as folder:
    (folder / "new.txt").write_text("x")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("done", "there"), [(0, ["old.txt"]), (1, None), (2, ["new.txt"])])
def test_a_kill_while_an_old_folder_is_replaced_leaves_nothing_beside_it(project, done, there):
    """A folder dependency of DVC would find it: `data/synthetic/own`, for one, is what meta_train reads."""
    out = project / "data/out"
    out.mkdir(parents=True)
    (out / "old.txt").write_text("x")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    code = REPLACER.replace("DONE", str(done))
    ended = subprocess.run([sys.executable, "-c", code], cwd=project, env=environment)
    assert ended.returncode == -signal.SIGKILL
    assert [path.name for path in (project / "data").iterdir()] == (["out"] if there else [])
    assert not there or [path.name for path in out.iterdir()] == there
    with files.new_folder(out) as folder:
        (folder / "new.txt").write_text("x")
    assert [path.name for path in out.iterdir()] == ["new.txt"] and leftovers(project) == []


def test_json_is_standard_at_infinity_and_comes_back(project):
    path = project / "a.json"
    files.write_json(path, {"epsilon": math.inf, "deep": [{"low": -math.inf, "x": 1.5}]})
    json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    content = files.read_json(path)
    assert float(content["epsilon"]) == math.inf and content["deep"][0] == {"low": "-inf", "x": 1.5}


@pytest.mark.parametrize("text", ["", "{", "not json"])
def test_broken_json_is_one_sentence(project, text):
    path = project / "a.json"
    path.write_text(text)
    with pytest.raises(
        UserError, match=r"Could not read .*a\.json.* after a crash, `make recover` first"
    ):
        files.read_json(path)
    with pytest.raises(UserError, match="Could not read"):
        files.read_json(project / "absent.json")


def test_csv_keeps_the_columns_in_order_of_appearance(project):
    path = project / "a.csv"
    files.write_csv(path, [{"round": 1, "loss": 2.5}, {"round": 2, "accuracy": 0.5}])
    assert path.read_text() == "round,loss,accuracy\n1,2.5,\n2,,0.5\n"
    assert files.read_csv(path)[1] == {"round": "2", "loss": "", "accuracy": "0.5"}
    with pytest.raises(UserError, match="Could not read"):
        files.read_csv(project / "absent.csv")


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n3", "a,b\n1,2\n3,4", "a,b\n1\n", "a\n1,2\n", 'a\n"1\n', "a\n\x00\x00"]
)
def test_a_cut_csv_is_one_sentence(project, text):
    """The last cell of a file that was cut may look like a number, too."""
    path = project / "a.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=r"Could not read .*a\.csv"):
        files.read_csv(path)


@pytest.mark.parametrize("text", ["5", "null", "[]", "[" * 100_000])
def test_json_that_is_no_mapping_is_one_sentence(project, text):
    path = project / "a.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"a\.json") as error:
        files.read_json(path)
    assert "\n" not in str(error.value)


def test_sha256_is_of_the_content(project):
    (project / "a").write_bytes(b"abc")
    assert files.sha256(project / "a") == hashlib.sha256(b"abc").hexdigest()


def test_what_a_killed_run_left_is_there_until_its_block_ends_well(project):
    def used(fails):
        with scratch.unfinished("a") as folder:
            folder.mkdir(exist_ok=True)
            (folder / "kept").touch()
            if fails:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        used(fails=True)
    with scratch.unfinished("a") as folder:
        assert (folder / "kept").exists()
        with scratch.unfinished("a") as another, scratch.unfinished("b") as other:
            assert another is None and other != folder  # one process at a time
        assert (folder / "kept").exists()
    assert not folder.exists()
