"""DVC hashes a folder of code once in a run, and again as soon as a file of it is another."""

import os

import pytest
from dvc import output
from dvc.repo import Repo

from pipelines.reproduction.hashed_once import hashed_once, state_of

STAGES = """stages:
  one: {cmd: "true", deps: [code, module.py, data]}
  two: {cmd: "true", deps: [code, module.py, data]}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Has two stages with the same dependencies: a package, a module and a folder of data."""
    Repo.init(str(tmp_path), no_scm=True)
    for name in ("code/__init__.py", "code/inner/part.py", "module.py", "data/0.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {name}")
    (tmp_path / "dvc.yaml").write_text(STAGES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def hashed(monkeypatch) -> list[str]:
    """Returns the names of what DVC itself hashed."""
    names = []
    build = output.build

    def noting(odb, path, *rest, **options):
        names.append(os.path.basename(path))
        return build(odb, path, *rest, **options)

    monkeypatch.setattr(output, "build", noting)
    return names


def hashes() -> dict[str, set[str]]:
    """Returns {dependency: its hash}, which the two stages must agree on."""
    found = {}
    with Repo() as repo:
        for stage in repo.index.stages:
            for dependency in stage.deps:
                found.setdefault(str(dependency), set()).add(dependency.get_hash().value)
    assert all(len(values) == 1 for values in found.values())
    return found


def test_code_is_hashed_once_and_data_for_each_stage(project, hashed):
    plain = hashes()
    assert sorted(hashed) == ["code"] * 2 + ["data"] * 2 + ["module.py"] * 2
    hashed.clear()
    with hashed_once():
        assert hashes() == plain
        assert hashes() == plain
    assert sorted(hashed) == ["code"] + ["data"] * 4 + ["module.py"]


def longer(project):
    (project / "code/inner/part.py").write_text("# another and longer text")


def another_time(project):
    """Writes as many bytes as before."""
    file = project / "module.py"
    file.write_text(file.read_text()[::-1])


def another_inode(project):
    """Puts another file of that size and time in its place."""
    file = project / "code/__init__.py"
    before = file.stat()
    (project / "other").write_text(file.read_text()[::-1])
    os.utime(project / "other", ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(project / "other", file)


def one_more(project):
    (project / "code/inner/new.py").write_text("")


def one_less(project):
    (project / "code/inner/part.py").unlink()


def another_name(project):
    os.rename(project / "code/inner/part.py", project / "code/inner/piece.py")


@pytest.mark.parametrize(
    "change", [longer, another_time, another_inode, one_more, one_less, another_name]
)
def test_a_change_within_the_run_is_seen(project, change):
    with hashed_once():
        before = hashes()
        change(project)
        after = hashes()
    assert after == hashes() != before


def test_behind_a_link_nothing_is_kept(project):
    elsewhere = project / "elsewhere.py"
    elsewhere.write_text("1")
    (project / "code/linked.py").symlink_to(elsewhere)
    with hashed_once():
        before = hashes()
        # a link of that time, size and inode
        elsewhere.write_text("2")
        after = hashes()
    assert after == hashes() != before


def test_code_that_is_not_there_is_dvcs_own_error(project):
    (project / "module.py").unlink()
    with hashed_once(), pytest.raises(FileNotFoundError):
        hashes()


def test_after_it_dvc_hashes_as_before():
    before = output.Output._build
    with pytest.raises(RuntimeError), hashed_once():
        raise RuntimeError
    assert output.Output._build is before


def reproduced() -> list[str]:
    """Returns the stages that DVC ran."""
    with hashed_once(), Repo() as repo:
        return [stage.name for stage in repo.reproduce()]


def test_a_dependency_that_dvc_lock_lacks_changes_no_other_stage(project):
    """DVC hashes such a one by another algorithm."""
    stages = """stages:
  one: {cmd: "echo 1 > one.txt", deps: [DEPS], outs: [one.txt]}
  two: {cmd: "echo 2 > two.txt", deps: [code, module.py, data], outs: [two.txt]}
"""
    (project / "dvc.yaml").write_text(stages.replace("DEPS", "data"))
    assert reproduced() == ["one", "two"]
    (project / "dvc.yaml").write_text(stages.replace("DEPS", "data, code, module.py"))
    assert reproduced() == ["one"]
    assert reproduced() == []


def test_what_python_compiles_meanwhile_is_no_change(project):
    before = state_of(project / "code")
    (project / "code/__pycache__").mkdir()
    (project / "code/__pycache__/part.pyc").write_bytes(b"1")
    assert state_of(project / "code") == before
