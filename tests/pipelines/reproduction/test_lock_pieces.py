"""DVC writes dvc.lock in pieces: the bytes are its own, whatever the stages and their order."""

import contextlib

import pytest
from dvc import dvcfile
from dvc.utils.serialize import _yaml, dumps_yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.reproduction.lock_pieces import lock_in_pieces

PLAIN = ["prepare@own", "fine_tune@own-dp_moments", "report", "-x"]
# names that YAML writes with quotes, or over two lines
ODD = ["a" * 140, "1", "true", "a: b"]
LONG = "python " + "a-long-word " * 20
DVCS_OWN = dvcfile.modify_yaml


def stage(number: int) -> dict:
    """Returns an entry with all that DVC notes, floats that YAML writes in its own way among it."""
    dep = {"path": f"data/{number}", "hash": "md5", "md5": f"{number:032x}.dir", "size": 7}
    params = {
        "params.yaml": {"delta": 1e-5, "rate": 1e-06, "names": ["on", "1", "a: b"], "n": None}
    }
    outs = [dict(dep)]
    return {"cmd": f"{LONG} --number {number}", "deps": [dep], "params": params, "outs": outs}


def by_dvc(folder, changes: dict[str, dict]) -> str:
    """Returns the text of a folder's dvc.lock after DVC's own way of putting stages into it."""
    return modified(folder / "dvc.lock", changes, DVCS_OWN)


def modified(path, changes: dict[str, dict], modify=None) -> str:
    """Returns the file's text after stages were put into it in the way that DVC has at present."""
    with (modify or dvcfile.modify_yaml)(str(path)) as data:
        if not data:
            data.update({"schema": "2.0"})
        data["stages"] = data.get("stages", {})
        data["stages"].update(changes)
    return path.read_text()


def changes_of(names: list[str]) -> st.SearchStrategy:
    """Returns a strategy of lists of {name: number of its entry}."""
    some = st.dictionaries(st.sampled_from(names), st.integers(0, 3), min_size=1)
    return st.lists(some, min_size=1, max_size=4)


@settings(deadline=None, max_examples=20)
@given(changes_of(PLAIN) | changes_of(PLAIN + ODD))
def test_after_any_changes_the_bytes_are_those_of_dvc(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("locks")
    (folder / "theirs").mkdir()
    with lock_in_pieces():
        for step in steps:
            changes = {name: stage(number) for name, number in step.items()}
            assert modified(folder / "dvc.lock", changes) == by_dvc(folder / "theirs", changes)


def test_a_text_that_somebody_else_wrote_in_between_is_read(tmp_path):
    (tmp_path / "theirs").mkdir()
    with lock_in_pieces():
        for changes in ({"a": stage(1)}, {"b": stage(2)}):
            for folder in (tmp_path, tmp_path / "theirs"):
                by_dvc(folder, {"a": stage(3), "c": stage(0)})
            ours = modified(tmp_path / "dvc.lock", changes)
            assert ours == by_dvc(tmp_path / "theirs", changes)


def test_what_was_written_last_is_not_parsed_again(tmp_path, monkeypatch):
    path = tmp_path / "dvc.lock"
    modified(path, {"a": stage(1)})
    parsed = []
    parse = _yaml.parse_yaml
    monkeypatch.setattr(_yaml, "parse_yaml", lambda *known: parsed.append(known) or parse(*known))
    with lock_in_pieces():
        modified(path, {"b": stage(2)})
        modified(path, {"c": stage(3)})
        modified(path, {"b": stage(0)})
    assert len(parsed) == 1
    assert parse(path.read_text(), "")["stages"] == {"a": stage(1), "b": stage(0), "c": stage(3)}


def test_only_the_stage_that_changed_is_written_anew(tmp_path, monkeypatch):
    path = tmp_path / "dvc.lock"
    modified(path, {"a": stage(1), "b": stage(2)})
    written = []

    def noting(data):
        written.append(data)
        return dumps_yaml(data)

    monkeypatch.setattr("dvc.utils.serialize.dumps_yaml", noting)
    with lock_in_pieces():
        modified(path, {"a": stage(1), "b": stage(3)})
    assert [list(data["stages"] or {}) for data in written] == [[], ["b"]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "schema: '2.0'\nstages:\n  a:\n    cmd: x # by hand\n",
        "schema: '2.0'\nstages: {a: {cmd: x}}\n",
    ],
)
def test_a_file_that_is_not_as_dvc_writes_it_is_left_to_dvc(tmp_path, text):
    (tmp_path / "theirs").mkdir()
    for folder in (tmp_path, tmp_path / "theirs"):
        (folder / "dvc.lock").write_text(text)
    theirs = modified(tmp_path / "theirs/dvc.lock", {"b": stage(1)})
    with lock_in_pieces():
        assert modified(tmp_path / "dvc.lock", {"b": stage(1)}) == theirs


def test_an_error_in_between_changes_nothing(tmp_path):
    path = tmp_path / "dvc.lock"
    text = modified(path, {"a": stage(1)})
    with lock_in_pieces(), pytest.raises(RuntimeError), dvcfile.modify_yaml(str(path)) as data:
        data["stages"].clear()
        raise RuntimeError
    assert path.read_text() == text


def test_after_it_dvc_writes_as_before():
    before = dvcfile.modify_yaml
    with contextlib.suppress(RuntimeError), lock_in_pieces():
        raise RuntimeError
    assert dvcfile.modify_yaml is before
