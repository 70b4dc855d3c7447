"""Tests the rounds of the benchmark of secure sums over NVFlare: their terms, and a real job."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import parameter_files
import pytest
from project import ENV, ROOT

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from benchmarks import secure_sum_network
from benchmarks.secure_sum_network import Round, Summand
from pipelines import config
from pipelines.federation.network.flare import client, processes
from pipelines.privacy.secure_sums.roster import Identity

KEYS = {f"c{number:02}": Identity.fresh().public.hex() for number in range(5)}


def test_all_sides_of_a_round_have_the_same_terms_and_rounds_differ():
    terms = Round(KEYS, 3, 100).terms
    assert (terms.clients, terms.colluding, terms.threshold, terms.length) == (5, 2, 4, 100)
    assert terms.digest == Round(dict(reversed(KEYS.items())), 3, 100).terms.digest
    assert terms.digest != Round(KEYS, 4, 100).terms.digest


class Engine:
    """Calls the benchmark's clients in this process, each under its own name."""

    def __init__(self, monkeypatch, home):
        monkeypatch.chdir(home)
        monkeypatch.setenv("FEDLENS_HOME", str(home))
        self.site = SimpleNamespace(site_name="", caller=client.SERVERS_CELL)
        monkeypatch.setattr(secure_sum_network, "collab", self.site)
        monkeypatch.setattr(client, "collab", self.site)
        self.clients = {name: Summand() for name in KEYS}
        self.keys = {name: one.identity.public.hex() for name, one in self.clients.items()}

    def ask_each(self, call: str, arguments: dict) -> dict:
        answers = {}
        for name, given in arguments.items():
            self.site.site_name = name
            answers[name] = getattr(self.clients[name], call)(**given)
        return answers


def test_both_sums_of_a_round_are_made_and_timed(monkeypatch, tmp_path):
    engine = Engine(monkeypatch, tmp_path)
    assert min(secure_sum_network.both(engine, Round(engine.keys, 0, 100))) > 0


def test_a_plain_sum_of_other_vectors_is_noticed(monkeypatch, tmp_path):
    engine = Engine(monkeypatch, tmp_path)
    other = {"vector": np.zeros(100, np.int64)}
    monkeypatch.setattr(Summand, "plain", lambda summand: other)
    with pytest.raises(AssertionError, match="not the plain sum"):
        secure_sum_network.both(engine, Round(engine.keys, 0, 100))


def test_clients_are_named_as_the_vectors_are():
    params = secure_sum_network.with_clients(config.load(), 40)
    names = secure_sum_network.vectors_of(40, 1)
    assert list(params.clients) == list(names)


@pytest.mark.engine
@pytest.mark.slow
def test_it_measures_over_the_network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parameter_files.copy_files(ROOT, tmp_path)
    code = (
        "import sys\n"
        "from benchmarks import common, secure_sum_network as own\n"
        "common.RESULTS = common.Path('results')\n"
        "sys.argv = ['', '--most', '5']\n"
        "own.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**ENV, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "results/secure_sum_network.json").read_text())["rows"]
    assert [row["clients"] for row in rows] == [3, 5, 3, 5]
    assert not processes._working_in(tmp_path)
