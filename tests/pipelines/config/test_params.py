"""Tests blocks that disagree, files that are no params.yaml, and the command that checks one."""

import os
import subprocess
import sys

import parameter_files
import pytest
from project import ROOT
from shipped import changed, load, mistakes, shipped

from pipelines import config
from pipelines.config.places import belongs_in
from pipelines.errors import UserError


def test_the_shipped_parameters_are_valid():
    config.load(ROOT / "params.yaml")
    load(shipped())


@pytest.mark.parametrize(
    "path, bad, said",
    [
        (("datasets",), ["fashion"], "a file in 'profiles'"),
        (("clients",), {}, "at least one client"),
        (("clients",), {"c9": {"epsilon": 1.0}}, "'partition.clients'"),
        (("partition", "clients"), ["c0", "c1", "c1"], "none twice"),
        (("partition", "small"), {"client": "c9", "train_records": 4}, "'partition.clients'"),
        (("partition", "small"), {"client": "c1", "train_records": 3}, "[4, 1e9]"),
        (("partition", "test_fraction"), 0.95, "below 1 - validation_fraction"),
        (
            ("partition", "scheme"),
            "random",
            "one of 'dirichlet', 'shards', 'quantity', 'iid' or 'natural'",
        ),
        (("privacy", "noise"), "none", "one of 'os_entropy' or 'seeded_for_tests'"),
        (("synthesis", "generators"), ["dp_marf"], "one of 'datalens'"),
        (("profiles", "digits", "shape"), [8, 8], "three"),
        (("profiles", "digits", "shape"), [8, 8, 1, 1], "three"),
        (
            ("profiles", "digits", "shape"),
            [8, 0, 1],
            "Item 2 of the list profiles.digits.shape must be an int in [1, 4096]. Got 0",
        ),
        (("profiles", "digits", "classifier"), "cnn", "'mlp' for images below 16x16"),
        (("meta", "ema"), "yes", "boolean"),
        (("meta",), None, "a mapping"),
        (("meta",), 3, "a mapping"),
        (("clients", "c0"), 3.0, "a mapping"),
        (("synthesis", "gan"), None, "a mapping"),
        (("profiles", "digits", "synthesis", "gan"), None, "a mapping"),
    ],
)
def test_blocks_that_disagree_are_one_sentence(path, bad, said):
    (line,) = mistakes(changed(path, bad))
    assert said in line and "Got" in line and line.endswith(f"({belongs_in(path)})")


@pytest.mark.parametrize(
    "text", ["", "[1, 2]", "seed: [1", "seed: 1\nseed: 2", "a: !!python/object:os.system b", "\0"]
)
def test_a_file_that_is_no_mapping_or_no_yaml_is_one_sentence(text, tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        config.load(path)
    assert len(str(error.value).splitlines()) == 1 and "params.yaml" in str(error.value)


def test_a_file_in_another_encoding_or_absent_is_one_sentence(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_bytes("seed: 1  # é".encode("latin-1"))
    with pytest.raises(UserError, match="not valid YAML"):
        config.load(path)
    with pytest.raises(UserError, match=r"Could not read .* Run from the project's root"):
        config.load(tmp_path / "absent.yaml")


def command(folder, content: dict) -> subprocess.CompletedProcess:
    """Runs `python -m pipelines.config` where the files hold `content`."""
    parameter_files.write(folder, content)
    return subprocess.run(
        [sys.executable, "-m", "pipelines.config"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def test_the_command_says_in_one_line_that_all_is_well(tmp_path):
    run = command(tmp_path, shipped())
    assert (run.returncode, run.stderr) == (0, "")
    said = "params.yaml is valid: 1 data set, 2 clients, 2 generators, 4 baselines, 7 noisy baselines.\n"
    assert run.stdout == said


def test_the_command_checks_the_file_of_the_working_folder(tmp_path):
    run = command(tmp_path, changed(("seed",), -1))
    assert run.returncode == 1
    assert run.stderr.strip().splitlines() == [
        "Error: The 'seed' parameter must be an int in [0, 1e18]. Got -1 instead. (params.yaml)"
    ]
