"""Tests what Git says that it would take, in small repositories."""

import shutil

import pytest
from project import GIT, Project

from pipelines.errors import UserError
from pipelines.guard import repository


@pytest.fixture
def small(tmp_path):
    project = Project(tmp_path / "small")
    project.path.mkdir()
    project.git("init", "-q", "-b", "main")
    (project.path / ".gitignore").write_text("/kits/\n*.key\n")
    return project


def write(project, *names: str) -> None:
    for name in names:
        file = project.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)


def test_git_takes_what_it_tracks_also_ignored_and_what_it_would_add(small):
    write(small, "kits/a", "new", "b.key", "c.key", "Ähre\n.txt")
    small.git("add", "-f", "b.key")
    assert repository.takes(small.path) == [".gitignore", "b.key", "new", "Ähre\n.txt"]
    assert repository.tracked(small.path, ".") == ["b.key"]


def test_a_name_that_is_no_utf_8_is_a_name(small):
    name = "caf\udce9"
    (small.path / name).write_text("x")
    assert name in repository.takes(small.path)


def test_what_is_staged_and_then_changed_or_removed_is_given_as_git_has_it(small):
    write(small, "kept", "changed", "removed")
    small.git("add", "-A")
    (small.path / "changed").write_text("other")
    (small.path / "removed").unlink()
    assert dict(repository.staged_apart(small.path)) == {
        "changed": b"changed",
        "removed": b"removed",
    }


def test_a_copy_of_a_checkout_whose_files_have_other_times_has_nothing_staged_apart(
    small, tmp_path
):
    write(small, "kept", "changed")
    small.git("add", "-A")
    copy = Project(tmp_path / "copy")
    shutil.copytree(small.path, copy.path, copy_function=shutil.copy)
    assert copy.git("diff-files", "--name-only").split() == [".gitignore", "changed", "kept"]
    assert dict(repository.staged_apart(copy.path)) == {}
    (copy.path / "changed").write_text("other")
    assert dict(repository.staged_apart(copy.path)) == {"changed": b"changed"}


def test_a_staged_file_that_looks_renamed_is_still_given(small):
    """Git would show the new name alone, and the content in its index would be searched by nobody."""
    lines = [f"line {number}" for number in range(20)]
    (small.path / "before").write_text("\n".join(["secret", *lines]))
    small.git("add", "-A")
    (small.path / "before").unlink()
    (small.path / "after").write_text("\n".join(lines))
    small.git("add", "-N", "after")
    given = dict(repository.staged_apart(small.path))
    assert given["before"].startswith(b"secret")


def test_links_submodules_and_names_that_are_only_announced_have_no_content_of_their_own(small):
    write(small, "announced", "inner/file")
    (small.path / "link").symlink_to("announced")
    small.git("add", "-N", "announced")
    small.git("add", "link")
    (small.path / "link").unlink()
    inner = Project(small.path / "inner")
    inner.git("init", "-q")
    for number in range(2):
        inner.git("add", "-A")
        inner.git("commit", "-q", "--allow-empty", "-m", str(number))
        if not number:
            small.git("add", "inner")
    assert {name for name, content in repository.staged_apart(small.path) if content} == set()


def test_both_sides_of_a_merge_are_given(small):
    for branch, text in (("one", "1"), ("two", "2")):
        small.git("checkout", "-q", "--orphan", branch)
        (small.path / "file").write_text(text)
        small.git("add", "-A")
        small.git("commit", "-qm", branch)
    small.run(*GIT, "merge", "-q", "--allow-unrelated-histories", "one", ok=False)
    assert {content for name, content in repository.staged_apart(small.path) if name == "file"} == {
        b"1",
        b"2",
    }


def test_a_folder_is_taken_unless_its_repository_ignores_it(small, tmp_path):
    assert not repository.would_add(small.path / "kits")
    assert not repository.would_add(small.path / "kits/of/another")
    assert repository.would_add(small.path / "kits2")
    assert repository.would_add(small.path / "docs/kits")
    assert repository.would_add(small.path)
    assert not repository.would_add(small.path / ".git/kits")
    assert not repository.would_add(tmp_path / "kits")
    (tmp_path / "link").symlink_to(small.path)
    assert repository.would_add(tmp_path / "link/kits2")


def test_a_folder_whose_own_name_alone_is_ignored_is_taken(small):
    """`*.key` covers no folder of keys and certificates."""
    assert repository.would_add(small.path / "state")


def test_what_git_cannot_say_is_a_sentence(small, tmp_path, monkeypatch):
    with pytest.raises(
        UserError, match=r"Git cannot say what it would take of .*: not a git repository"
    ):
        repository.takes(tmp_path)
    (small.path / ".git/config").write_text("[core\n")
    with pytest.raises(UserError, match="Git cannot say"):
        repository.would_add(small.path / "kits")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="Git is not installed"):
        repository.would_add(small.path / "kits")
