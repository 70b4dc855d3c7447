"""Tests the guard on a small project in which nothing has run. tests/test_pipeline.py does so on a
whole one, after `dvc repro`.
"""

import json
import subprocess

import pytest
from key_files import pem, zipped
from project import ROOT
from small import PRIVATE, made

from pipelines import paths
from pipelines.guard import checks, keys


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "fedlens").mkdir()
    monkeypatch.chdir(tmp_path / "fedlens")
    return made(tmp_path / "fedlens")


def change(project, old: str, new: str) -> None:
    graph = (project.path / "dvc.yaml").read_text()
    assert old in graph
    (project.path / "dvc.yaml").write_text(graph.replace(old, new))


def test_a_project_as_it_is_shipped_passes(project):
    assert checks.problems() == []


def test_a_private_output_that_would_be_pushed_is_named(project):
    change(project, f"{PRIVATE}: {{push: false}}", PRIVATE)
    assert checks.problems() == [
        f"{PRIVATE} (train) is not on the release list and lacks `push: false`."
    ]


def test_a_private_output_without_a_cache_is_named(project):
    """`dvc exp push` puts such a one into a Git commit, whatever `push` says."""
    change(project, "push: false", "push: false, cache: false")
    assert checks.problems() == [
        f"{PRIVATE} is private and `cache: false`: `dvc exp push` would put it into Git."
    ]


@pytest.mark.parametrize(
    "folder", [folder for folder in checks.GENERATED if folder not in ("raw", *checks.OF_DVC)]
)
def test_a_private_folder_that_git_would_add_is_named(project, folder):
    lines = (project.path / ".gitignore").read_text().splitlines()
    lines.remove(f"/{folder}/")
    (project.path / ".gitignore").write_text("\n".join(lines))
    assert checks.problems() == [
        f"{folder}/probe would be added by `git add -A`: .gitignore misses it."
    ]


def test_a_private_file_that_git_tracks_is_named(project):
    (project.path / "raw/own.npz").touch()
    project.git("add", "-f", "raw/own.npz")
    assert checks.problems() == ["raw/own.npz is tracked by Git."]


@pytest.mark.parametrize("name", ["docs/client.txt", "Ähre.md", "state.json", "c0.zip"])
def test_a_private_key_that_git_would_add_is_named(project, name):
    content = {
        "state.json": json.dumps({"root_pri_key": pem()}).encode(),
        "c0.zip": zipped({"a.txt": pem().encode()}),
    }
    (project.path / name).parent.mkdir(exist_ok=True)
    (project.path / name).write_bytes(content.get(name, pem("RSA ").encode()))
    (line,) = checks.problems()
    where = "c0.zip: a.txt" if name == "c0.zip" else name
    assert line.startswith(f"{where} holds a private key, and Git tracks it or would add it.")
    project.git("add", "-A")
    (project.path / name).write_text("harmless")
    assert checks.problems() == [line]
    project.git("add", "-A")
    assert checks.problems() == []


@pytest.mark.parametrize("name", ["client.key", "cert.json", ".env", "id_rsa", "secrets/c0.secret"])
def test_a_file_of_secrets_is_ignored_by_git_and_named_when_it_is_tracked_all_the_same(
    project, name
):
    (project.path / name).parent.mkdir(exist_ok=True)
    (project.path / name).write_text("secret")
    assert name not in project.git("add", "-A", "-n")
    assert checks.problems() == []
    project.git("add", "-f", name)
    (line,) = checks.problems()
    assert line.startswith(f"{name} has the name of a private key or of a file of secrets")


def test_gitignore_hides_no_file_that_the_project_tracks():
    assert project_files("-ci", "--exclude-standard") == []


def test_the_projects_own_files_hold_no_key():
    assert not [place for name in project_files() for place in keys.search_file(ROOT / name, name)]


def project_files(*options: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", *options], cwd=ROOT, text=True, capture_output=True, check=True
    )
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def test_a_private_folder_that_a_user_puts_where_git_would_add_it_is_named(project, monkeypatch):
    monkeypatch.setenv(paths.LEDGERS, "books")
    (project.path / ".dvc/config.local").write_text("[cache]\n    dir = ../store\n")
    ledgers, cache = checks.problems()
    assert ledgers.startswith(
        "books, the folder of the ledgers (FEDLENS_LEDGERS), would be added by `git add -A`."
    )
    assert "store, the folder of DVC's cache, would be added by `git add -A`." in cache
    with (project.path / ".gitignore").open("a") as file:
        file.write("/books/\n/store/\n")
    assert checks.problems() == []
    monkeypatch.setenv(paths.LEDGERS, "../books")
    assert checks.problems() == []


def test_a_mistake_in_a_file_is_one_sentence_and_hides_no_other(project):
    project.edit(lambda params: params["meta"].update(rounds=-1))
    (project.path / "notes.txt").write_text(pem())
    lines = checks.problems()
    assert len(lines) == 2 and "'rounds' parameter of meta" in "".join(lines)
    (project.path / "dvc.yaml").write_text("stages: 3\n")
    assert any(line.startswith("DVC cannot read this project: ") for line in checks.problems())


def test_without_a_repository_the_guard_fails(project):
    (project.path / ".git").rename(project.path / "git")
    assert checks.problems()
