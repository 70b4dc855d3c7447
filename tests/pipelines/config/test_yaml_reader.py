"""Tests that every file that is no plain YAML gives one sentence, within a second."""

import shutil
import time
import warnings
from pathlib import Path

import parameter_files
import pytest
from project import ROOT

from pipelines import config
from pipelines.config import yaml_reader
from pipelines.errors import UserError


def refused(tmp_path: Path, text: str | bytes) -> str:
    """Returns what is said of a file of this content, after its name."""
    path = tmp_path / "params.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    began = time.process_time()
    with warnings.catch_warnings(), pytest.raises(UserError) as error:
        warnings.simplefilter("error")
        yaml_reader.read(path)
    assert time.process_time() - began < 2
    name, _, said = str(error.value).partition("params.yaml ")
    assert name == f"{tmp_path}/"
    return said


BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "\n".join(
    f"{two}: &{two} [{','.join(['*' + one] * 9)}]" for one, two in zip("abcdefgh", "bcdefghi")
)
CHAIN = "a0: &a0 [1]\n" + "\n".join(
    f"a{number + 1}: &a{number + 1} [*a{number}]" for number in range(40)
)


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "is empty."),
        ("# nothing but a comment\n", "is empty."),
        (
            "[1, 2]",
            "must hold a mapping, of names such as 'seed' and their values. It holds a list.",
        ),
        (
            "7",
            "must hold a mapping, of names such as 'seed' and their values. It holds a single value.",
        ),
        (
            "c:\n  epsilon: 1.0\n  epsilon: 2.0",
            'is not valid YAML (line 3): found duplicate key "epsilon".',
        ),
        (
            "a: 1\nb: !foo 7",
            "is not valid YAML (line 2): could not determine a constructor for the tag '!foo'.",
        ),
        (
            "a: !!python/object:os.system b",
            "is not valid YAML (line 1): could not determine a constructor for the tag",
        ),
        ("a: [1\n", "is not valid YAML (line 2): expected ',' or ']', but got '<stream end>'."),
        (
            "a: 1\n\tb: 2",
            "is not valid YAML (line 2): found character '\\t' that cannot start any token.",
        ),
        ("a: 1\n---\nb: 1", "is not valid YAML (line 2): but found another document."),
        ("a: *x", "is not valid YAML (line 1): found undefined alias 'x'."),
        ("a: 1\nb: \0", "is not valid YAML (line 2): a character that YAML does not allow."),
        (b"a: 1\nb: \xe9", "is not valid YAML (line 2): byte 0xe9 is no UTF-8."),
        (
            "a: 1e400",
            "is not valid YAML (line 1): found a float beyond 1.8e308, which would be read as infinity.",
        ),
        ("a: " + "9" * 5000, "is not valid YAML (line 1): found an int of more than 1000 digits."),
        (
            "a: 0x" + "f" * 5000,
            "is not valid YAML (line 1): found an int of more than 1000 digits.",
        ),
        ("a: !!int x", "is not valid YAML (line 1): found 'x', which is no number."),
        ("a: !!bool x", "is not valid YAML: 'x'."),
        ("a: 2024-99-99", "is not valid YAML: month must be in 1..12."),
        ("a: &x 1\nb: &x 2", "has the anchor '&x' twice, in lines 1 and 2: give one another name."),
        ("a: &x [*x]", "has an alias inside of what it names, '*x' in line 1."),
        ("a: &x {b: {<<: *x}}", "has an alias inside of what it names, '*x' in line 1."),
        ("[" * 3000 + "]" * 3000, "has more than 20 blocks within one another, in line 1."),
        ("{a: " * 3000 + "}" * 3000, "has more than 20 blocks within one another, in line 1."),
        ("- " * 3000 + "1", "has more than 20 blocks within one another, in line 1."),
        (CHAIN, "has more than 20 blocks within one another, in line 20."),
        (BOMB, "has more than 50,000 values, each alias counted as what it names, in line 5."),
        (
            "a: " + "x" * 1_000_000,
            "is larger than 1,000,000 bytes, which no file of parameters is.",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, text, said):
    found = refused(tmp_path, text)
    assert found.startswith(said) and len(found.splitlines()) == 1


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(
        UserError, match=r"Could not read .*/a: No such file or directory\. Run from the project"
    ):
        yaml_reader.read(tmp_path / "a")


@pytest.mark.parametrize("template", ["my_npz", "my_folder"])
def test_a_template_can_be_copied_as_it_stands(tmp_path, template):
    parameter_files.copy_files(ROOT, tmp_path)
    profiles = tmp_path / "profiles"
    shutil.copy(profiles / f"{template}.yaml", profiles / "skin.yaml")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        params = config.load(tmp_path / "params.yaml")
    assert params.profiles["skin"] == params.profiles[template]


def test_aliases_merges_and_infinity_are_what_yaml_says(tmp_path):
    (tmp_path / "a").write_text(
        "a: &a {b: 1.5, c: .inf}\nd: {<<: *a, b: 2}\ne: [*a, 0x10, 1e-05, null]\n"
    )
    assert yaml_reader.read(tmp_path / "a") == {
        "a": {"b": 1.5, "c": float("inf")},
        "d": {"b": 2, "c": float("inf")},
        "e": [{"b": 1.5, "c": float("inf")}, 16, 1e-5, None],
    }


def test_a_file_that_changed_is_read_anew_and_what_was_read_may_be_changed(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("a: {b: 1}")
    first = yaml_reader.read(path)
    first["a"]["b"] = 2
    assert yaml_reader.read(path) == {"a": {"b": 1}}
    path.write_text("a: {b: 3}")
    assert yaml_reader.read(path) == {"a": {"b": 3}}
