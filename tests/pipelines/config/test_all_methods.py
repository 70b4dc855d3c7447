"""Tests that all methods are listed in params.yaml, with every comment as it was."""

import difflib
import subprocess
import sys

import parameter_files
import pytest
from project import ROOT

from pipelines import config
from pipelines.config import all_methods
from pipelines.config.dp import DP_BASELINES
from pipelines.config.training import BASELINES


@pytest.fixture
def project(tmp_path, monkeypatch):
    parameter_files.copy_files(ROOT, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_are_listed_and_nothing_else_changes(project):
    path = project / "params.yaml"
    before = path.read_text().splitlines()
    added = all_methods.write(path)
    params = config.load()
    assert set(params.baselines.algorithms) == set(BASELINES)
    assert set(params.dp_baselines.algorithms) == set(DP_BASELINES)
    assert params.new_clients.held_out == ["c0", "c1", "c2"]
    after = path.read_text().splitlines()
    difference = list(difflib.ndiff(before, after))
    assert [line[2:] for line in difference if line.startswith("-")] == ["  held_out: []"]
    newcomers = ["  held_out:", "  - c0", "  - c1", "  - c2"]
    expected = [*newcomers, *(f"  - {name}" for name in added)]
    assert [line[2:] for line in difference if line.startswith("+")] == expected
    assert all_methods.write(path) == [] and path.read_text().splitlines() == after


def test_an_empty_list_is_filled(project):
    content = parameter_files.read(project)
    content["dp_baselines"]["algorithms"] = []
    parameter_files.write(project, content)
    all_methods.write(project / "params.yaml")
    assert config.load().dp_baselines.algorithms == list(DP_BASELINES)


def test_nobody_is_held_out_beside_a_joint_release(project):
    content = parameter_files.read(project)
    content["synthesis"]["generators"] = ["joint_moments"]
    parameter_files.write(project, content)
    all_methods.write(project / "params.yaml")
    assert config.load().new_clients.held_out == []


def test_the_command_says_what_it_added(project):
    command = [sys.executable, "-m", "pipelines.config", "all-methods"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin"}
    for said in (
        "params.yaml lists all methods: added random_init, ",
        "params.yaml lists all methods.",
    ):
        done = subprocess.run(command, text=True, capture_output=True, env=environment, check=True)
        assert said in done.stdout
