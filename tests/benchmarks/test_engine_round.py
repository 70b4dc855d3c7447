"""What the benchmark of engines sends: as much as it says, and back unchanged."""

import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from benchmarks import engine_round
from pipelines.federation.engines.inprocess import InProcess


@pytest.mark.parametrize("megabytes", engine_round.MEGABYTES)
def test_the_weights_are_as_large_as_said(megabytes):
    assert sum(array.nbytes for array in engine_round.weights(megabytes).values()) == megabytes * 10**6


def test_a_round_in_this_process_runs_through_the_gate():
    served = engine_round.gate(1)
    assert engine_round.seconds(InProcess({"c0": served.answer, "c1": engine_round.gate(1).answer}), 1) > 0
    assert served.last == engine_round.ROUNDS
