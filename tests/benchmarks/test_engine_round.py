"""Tests that the benchmark of engines sends as many bytes as it says and gets them back unchanged."""

import ast
import subprocess
import sys

import parameter_files
import pytest
from project import ENV, ROOT

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from benchmarks import engine_round
from pipelines.federation.inprocess import InProcess
from pipelines.federation.network.flare import processes


@pytest.mark.parametrize("megabytes", engine_round.MEGABYTES)
def test_the_weights_are_as_large_as_said(megabytes):
    assert (
        sum(array.nbytes for array in engine_round.weights(megabytes).values()) == megabytes * 10**6
    )


def test_a_round_in_this_process_runs_through_the_gate():
    served = engine_round.gate(1)
    assert (
        engine_round.seconds(InProcess({"c0": served.answer, "c1": engine_round.gate(1).answer}), 1)
        > 0
    )
    assert served.last == engine_round.ROUNDS


@pytest.mark.engine
@pytest.mark.slow
def test_it_measures_over_the_network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parameter_files.copy_files(ROOT, tmp_path)
    code = "from benchmarks import engine_round as own; print(own.over_nvflare(own.three(own.config.load())))"
    program = [sys.executable, "-c", code]
    done = subprocess.run(
        program, env={**ENV, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert set(ast.literal_eval(done.stdout.splitlines()[-1])) == {
        str(size) for size in engine_round.MEGABYTES
    }
    assert not processes._working_in(tmp_path)
