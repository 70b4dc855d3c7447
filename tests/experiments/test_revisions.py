"""Tests that results are read in real DVC runs: the workspace, an experiment and a commit."""

import contextlib
import json
from pathlib import Path

import pytest

from experiments import compare, revisions
from pipelines.errors import UserError

pytestmark = pytest.mark.pipeline
PLACE = "models/private/baselines/own/random_init/random_init/results.json"
KEY = ("own", "random_init")


def read(project, *names: str) -> dict:
    with contextlib.chdir(project.path):
        return revisions.results(Path(), list(names))


def refused(project, *names: str) -> str:
    """Returns the sentence with which the command ends."""
    with contextlib.chdir(project.path), pytest.raises(SystemExit) as end:
        compare.main(list(names))
    return str(end.value)


def changed(project, accuracy: float) -> dict:
    """Writes another accuracy of c0 into the results in the workspace, and returns them."""
    path = project.path / PLACE
    content = json.loads(path.read_text())
    content["clients"]["c0"]["after"]["accuracy"] = accuracy
    path.unlink()
    path.write_text(json.dumps(content))
    return content


def noted(project, name: str) -> None:
    """Notes dvc.lock as an experiment, under the reference that DVC gives one of this commit."""
    project.git("add", "dvc.lock")
    commit = project.git("commit-tree", "-p", "HEAD", "-m", name, project.git("write-tree").strip())
    head = project.git("rev-parse", "HEAD").strip()
    project.git("update-ref", f"refs/exps/{head[:2]}/{head[2:]}/{name}", commit.strip())
    project.git("reset", "-q")


def saved(project, name: str) -> None:
    """Has DVC itself save the experiment, which takes ten times as long."""
    project.dvc("exp", "save", "--name", name)


@pytest.mark.parametrize("save", [noted, pytest.param(saved, marks=pytest.mark.slow)])
def test_three_runs_stand_side_by_side(built, capsys, save):
    """The workspace goes on after the experiment was saved, so that all three differ."""
    contents = {"HEAD": json.loads((built.path / PLACE).read_text())}
    contents["quick"] = changed(built, 0.25)
    built.dvc("commit", "--force", "train_baseline@own-random_init")
    save(built, "quick")
    contents["workspace"] = changed(built, 0.125)
    before = built.git("status", "--short")
    runs = read(built, *contents)
    assert {name: found[KEY].content for name, found in runs.items()} == contents
    assert len({json.dumps(content, sort_keys=True) for content in contents.values()}) == 3
    # what did not run again is the same in all
    assert len({json.dumps(found["own", "dpsgd"].content) for found in runs.values()}) == 1
    with contextlib.chdir(built.path):
        compare.main(list(contents))
    text = capsys.readouterr().out
    for name in contents:
        assert text.count(f" {name} ") == len(runs["HEAD"])
    assert built.git("status", "--short") == before


def test_a_run_that_is_none_is_a_sentence(built):
    assert refused(built, "workspace", "nobody").startswith("Error: There is no run 'nobody'")
    assert "'HEAD~1' has no results of any method" in refused(built, "HEAD~1")
    assert refused(built, "refs/exps/zz/none").startswith("Error: There is no run")


def test_a_result_that_the_cache_lost_is_a_sentence(built):
    with contextlib.chdir(built.path):
        content = (built.path / PLACE).read_bytes()
        for blob in Path(".dvc/cache/files/md5").rglob("*"):
            if blob.is_file() and blob.read_bytes() == content:
                blob.unlink()
    assert f"DVC's cache lacks {PLACE} of 'HEAD'" in refused(built, "HEAD")
    for listing in (built.path / ".dvc/cache/files/md5").rglob("*.dir"):
        listing.unlink()
    assert "DVC's cache lacks models/private/" in refused(built, "HEAD")
    # the workspace's own file is still there
    assert KEY in read(built, "workspace")["workspace"]


def test_a_workspace_without_a_run_and_a_folder_without_a_project_are_sentences(checkout, tmp_path):
    with pytest.raises(UserError, match="'workspace' has no results of any method"):
        read(checkout, "workspace")
    with contextlib.chdir(tmp_path), pytest.raises(UserError, match="DVC cannot read the project"):
        revisions.results(Path(), ["workspace"])


def test_a_damaged_result_is_a_sentence(built):
    (built.path / PLACE).unlink()
    (built.path / PLACE).write_text('{"clients": {}}')
    assert PLACE in refused(built, "workspace")
