"""Tests that recovery repairs what a crash left torn, and nothing else.

Each case is tested by itself; tests/crash has them at random.
"""

import contextlib
import fcntl
import json
import shutil
import sqlite3
import subprocess
import sys

import pytest
from project import ENV
from ruamel.yaml import YAML
from within import Within

from pipelines.errors import UserError
from pipelines.guard import checks
from pipelines.recover import dvc_files
from pipelines.recover.recovery import proof, recover

pytestmark = pytest.mark.pipeline

CELL = "train_generator@own-c0-dp_moments"
OUTPUT = "models/private/generators/own/c0/dp_moments"
NAME = f".{'a' * 22}.tmp"  # as DVC's temporary ones
GONE = 2**22 + 1  # above every process id of Linux


@pytest.fixture(scope="module")
def _made(_checkout, tmp_path_factory):
    """Makes a checkout after one release.

    DVC's databases lie beside it, not where all checkouts of the machine have them.
    """
    path = tmp_path_factory.mktemp("made") / "fedlens"
    shutil.copytree(_checkout, path)
    (path / ".dvc/config.local").write_text(
        f"[core]\n    site_cache_dir = {path.parent / 'site'}\n"
    )
    Within(path).repro(CELL)
    return path


@pytest.fixture
def made(_made, tmp_path, monkeypatch) -> Within:
    path = tmp_path / "fedlens"
    shutil.copytree(_made, path, symlinks=True)
    (path / ".dvc/config.local").write_text(f"[core]\n    site_cache_dir = {tmp_path / 'site'}\n")
    monkeypatch.chdir(path)
    return Within(path)


def contents(project) -> dict:
    return {
        str(file): file.read_bytes() for file in sorted(project.path.rglob("*")) if file.is_file()
    }


def command(project) -> subprocess.CompletedProcess:
    return project.run(sys.executable, "-m", "pipelines.recover", ok=False)


def died(project, *outputs: str) -> None:
    """Leaves the lock as a DVC does that was killed while it wrote these outputs."""
    holder = {"pid": GONE, "cmd": "dvc repro"}
    lock = {"write": {str(project.path / output): holder for output in outputs}, "read": {}}
    (project.path / ".dvc/tmp/rwlock").write_text(json.dumps(lock))


def test_where_all_is_whole_nothing_changes_and_one_line_says_so(made):
    before = contents(made)
    assert recover() == []
    done = command(made)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"Nothing to recover. {proof()}\n",
        "",
    )
    after = {name: content for name, content in contents(made).items() if "__pycache__" not in name}
    assert after == {name: content for name, content in before.items() if "__pycache__" not in name}


def test_a_checkout_in_which_nothing_ran_is_whole(checkout, monkeypatch):
    monkeypatch.chdir(checkout.path)
    assert recover() == []
    assert not (checkout.path / ".dvc/tmp").exists() and not (checkout.path / ".scratch").exists()


def test_what_was_torn_is_named_and_the_ledgers_vouch(made):
    for file in (".dvc/tmp/rwlock", "dvc.lock"):
        (made.path / file).write_text("")
    done = command(made)
    assert done.returncode == 0 and done.stderr == ""
    assert (
        "dvc.lock, which was cut off" in done.stdout
        and ".dvc/tmp/rwlock, left by a DVC that died" in done.stdout
    )
    assert done.stdout.endswith(" The ledgers are whole: 1 release, nothing was spent.\n")
    assert command(made).stdout.startswith("Nothing to recover. The ledgers are whole: ")


def test_dvc_takes_what_is_left_of_its_file_wherever_it_was_cut_off(made):
    results = made.path / "dvc.lock"
    whole = results.read_text()
    stages = YAML(typ="safe").load(whole)["stages"]
    for end in range(0, len(whole), 97):
        results.write_text(whole[:end])
        [*dvc_files._lock_file()]
        content = (
            YAML(typ="safe").load(results.read_text()) if results.exists() else {"schema": "2.0"}
        )
        left = content.get("stages", {})
        begun = sum(f"\n  {name}:" in whole[:end] for name in stages)
        assert content["schema"] == "2.0" and max(0, begun - 1) <= len(left) <= begun
        assert all(
            left[name] == stages[name] for name in list(left)[:-1]
        )  # the last may be cut where it still parses
    assert begun == len(stages) == 4


@pytest.mark.parametrize(
    "place", ["within the last stage", "around the last stage", "between two stages"]
)
def test_marks_of_a_merge_are_left_to_whoever_merges(made, place):
    results = made.path / "dvc.lock"
    whole = results.read_text()
    second, last = (
        whole.rindex(f"\n  {name}:") + 1
        for name in list(YAML(typ="safe").load(whole)["stages"])[-2:]
    )
    begin, end = {
        "within the last stage": (whole.rindex("    deps:"), len(whole)),
        "around the last stage": (last, len(whole)),
        "between two stages": (second, last),
    }[place]
    merged = f"{whole[:begin]}<<<<<<< ours\n{whole[begin:end]}=======\n{whole[begin:end]}>>>>>>> theirs\n{whole[end:]}"
    results.write_text(merged)
    assert [*dvc_files._lock_file()] == [] and results.read_text() == merged


def test_a_schema_that_dvc_does_not_know_is_no_crash(made):
    results = made.path / "dvc.lock"
    other = results.read_text().replace("schema: '2.0'", "schema: '3.0'")
    results.write_text(other)
    assert [*dvc_files._lock_file()] == [] and results.read_text() == other


def test_a_database_at_which_somebody_works_is_whole(tmp_path):
    database = tmp_path / "cache.db"
    with contextlib.closing(sqlite3.connect(database)) as busy:
        busy.execute("CREATE TABLE t (x)")
        busy.execute("BEGIN EXCLUSIVE")
        assert dvc_files._opens(database, timeout=0.01)
    database.write_bytes(b"no database" * 100)
    assert not dvc_files._opens(database)


def test_every_stage_comes_back_from_the_run_cache_and_nothing_is_spent(made):
    ledger = made.path / "ledgers/own/c0.jsonl"
    entries, results = ledger.read_bytes(), made.path / "dvc.lock"
    whole = results.read_text()
    for file, content in (
        (made.path / ".dvc/tmp/rwlock", ""),
        (results, whole[: whole.index(" md5: ") + 3]),
    ):
        file.write_text(content)
        refused = made.dvc("repro", CELL, ok=False)
        assert refused.returncode != 0 and file.name in refused.stderr + refused.stdout
        assert recover()
        assert made.repro(CELL) == []
    assert ledger.read_bytes() == entries


@pytest.mark.parametrize("lock", ["named", "torn"])
def test_an_output_that_is_half_there_goes_and_one_that_is_whole_stays(made, lock):
    other = "data/private/own/prepared"
    died(made, OUTPUT, other)
    if lock == "torn":
        (made.path / ".dvc/tmp/rwlock").write_text('{"write": {')
    (made.path / OUTPUT / "generator.safetensors").unlink()
    whole = contents(Within(made.path / other))
    found = recover()
    assert f"{OUTPUT}, which DVC had not finished" in found and not (made.path / OUTPUT).exists()
    assert contents(Within(made.path / other)) == whole and not any(other in what for what in found)
    assert made.repro(CELL) == [] and (made.path / OUTPUT / "generator.safetensors").exists()


def test_an_output_that_no_dying_dvc_wrote_is_left_as_it_is(made):
    (made.path / OUTPUT / "generator.safetensors").write_bytes(b"mine")
    died(made, "data/private/own/prepared")
    assert recover() == [".dvc/tmp/rwlock, left by a DVC that died"]
    assert (made.path / OUTPUT / "generator.safetensors").read_bytes() == b"mine"


def test_files_that_dvc_had_not_yet_renamed_go(made):
    places = [OUTPUT, f"{OUTPUT}/..", "data/private/own", ".dvc/cache/files/md5", "."]
    places.append(next((made.path / ".dvc/cache/runs").glob("*/*")))
    for place in places:
        (made.path / place / NAME).write_text("half")
    (made.path / OUTPUT / "mine.tmp").touch()
    assert recover() == [f"{len(places)} temporary files of DVC"]
    assert [file.name for file in made.path.rglob("*.tmp")] == ["mine.tmp"]


def test_a_cached_file_that_was_cut_off_goes_and_protected_ones_are_not_read(made):
    cached = [
        file for file in (made.path / ".dvc/cache/files/md5").glob("*/*") if file.stat().st_size > 3
    ]
    torn, empty, unprotected = cached[:3]
    for file in (torn, empty, unprotected):
        file.chmod(0o644)
    torn.write_bytes(torn.read_bytes()[:3])
    empty.write_bytes(b"")
    empty.chmod(0o444)
    recover()
    assert not torn.exists() and not empty.exists() and unprotected.exists()


def test_a_broken_database_of_hashes_is_computed_anew(made):
    made.repro(CELL)
    databases = [*(made.path.parent / "site").rglob("cache.db")]
    assert len(databases) == 2
    databases[0].write_bytes(b"not a database" * 1000)
    assert len(recover()) == 1
    assert made.repro(CELL) == [] and recover() == []


def test_ours_are_folders_in_the_making_and_a_ledgers_torn_line_and_what_a_made_release_had_needed(
    made,
):
    partial, ledger = made.path / ".scratch/partial/clients.x", made.path / "ledgers/own/c0.jsonl"
    store = next((made.path / "ledgers/own/releases").iterdir())
    unfinished = store.with_name(f".{store.name}.unfinished")
    other = store.with_name(".0123.unfinished")  # of a release that is still open
    for folder in (partial, unfinished, other):
        folder.mkdir(parents=True)
        (folder / "record").write_text("private")
    whole = ledger.read_bytes()
    ledger.write_bytes(whole + b'{"event": "op')
    assert len(recover()) == 3
    assert ledger.read_bytes() == whole
    assert not partial.exists() and not unfinished.exists() and other.exists()


def test_the_index_of_git_is_freed(made):
    (made.path / ".git/index.lock").touch()
    assert recover() == [".git/index.lock, left by a Git that died"]
    made.git("add", "-A")


def test_a_record_of_an_experiment_that_was_cut_off_goes(made):
    run = made.path / ".dvc/tmp/exps/run/workspace/workspace.run"
    run.parent.mkdir(parents=True)
    run.write_text('{"git_url": "')
    assert len(recover()) == 1 and not run.exists()


@contextlib.contextmanager
def lock_held(project):
    with (project.path / ".dvc/tmp/lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def stage_running(project):
    """Runs a process that looks like a stage.

    DVC releases its lock while a stage runs, and a stage may outlive its DVC.
    """
    waiting = [sys.executable, "-c", "print(flush=True); input()", "-m", "stages.prepare"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(waiting, cwd=project.path, env=ENV, **pipes) as running:
        running.stdout.readline()
        yield
        running.communicate("\n")


@pytest.mark.parametrize("at_work", [lock_held, stage_running])
def test_nothing_is_touched_while_dvc_or_a_stage_is_at_work(made, at_work):
    (made.path / "dvc.lock").write_text("")
    with at_work(made), pytest.raises(UserError, match="at work in this checkout"):
        recover()
    assert (made.path / "dvc.lock").exists()
    assert recover()


def test_a_ledger_that_was_tampered_with_is_no_crash_and_nothing_is_touched(made):
    ledger = made.path / "ledgers/own/c0.jsonl"
    ledger.write_text(ledger.read_text().replace('"epsilon":10.0', '"epsilon":1.0', 1))
    (made.path / "dvc.lock").write_text("")
    done = command(made)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("Error: ledgers/own/c0.jsonl, line 1: the chain is broken")
    assert (made.path / "dvc.lock").exists()


def test_a_file_of_dvc_that_no_crash_explains_is_left_and_told(made):
    """Conflict marks are one such case: the last stage is whole."""
    results = made.path / "dvc.lock"
    results.write_text(results.read_text().replace("stages:\n", "stages:\n<<<<<<< ours\n", 1))
    before = results.read_text()
    died(made, OUTPUT)
    with pytest.raises(UserError, match=r"DVC stopped: .*dvc\.lock.* Mend that"):
        recover()
    assert results.read_text() == before


def test_the_guard_says_what_mends_a_torn_file(made):
    (made.path / "dvc.lock").write_text("")
    assert [line for line in checks.problems(made.path) if "make recover" in line]
    assert recover()
    assert not [line for line in checks.problems(made.path) if "make recover" in line]


def test_a_release_without_its_stored_result_is_told(made):
    shutil.rmtree(made.path / "ledgers/own/releases")
    (made.path / ".dvc/tmp/rwlock").write_text("")
    assert "1 of them have no stored result here" in command(made).stdout
