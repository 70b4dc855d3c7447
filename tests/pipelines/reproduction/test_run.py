"""Tests which stages wait for each other although none needs the other's outputs."""

import networkx as nx
import pytest

from pipelines.reproduction.run import CHARGING, needs


class Stage:
    """Is like a stage of DVC's."""

    def __init__(self, name: str, **arguments: str):
        words = [f"--{key} {value}" for key, value in arguments.items()]
        self.cmd = " ".join([f"python -m stages.{name}", *words])


def waiting(*stages: Stage) -> list[set[int]]:
    """Returns for each stage the places of those that it waits for, none needing an output."""
    graph = nx.DiGraph()
    graph.add_nodes_from(stages)
    found = needs(list(stages), graph)
    assert list(found) == list(stages)
    return [{stages.index(other) for other in others} for others in found.values()]


def cell(client: str, dataset: str = "digits") -> Stage:
    return Stage("train_generator", dataset=dataset, client=client, generator="dp_moments")


def test_releases_of_one_ledger_keep_the_order_of_the_plan_and_others_overlap():
    assert waiting(cell("c0"), cell("c1"), cell("c0"), cell("c0", "mnist")) == [
        set(), set(), {0}, set()
    ]  # fmt: skip


def test_a_release_of_all_clients_waits_for_each_of_its_data_set_and_each_for_it():
    everybody = Stage("train_dp_baseline", dataset="digits", algorithm="dpsgd")
    assert waiting(cell("c0"), cell("c1", "mnist"), everybody, cell("c1")) == [
        set(), set(), {0}, {2}
    ]  # fmt: skip


def test_what_charges_no_ledger_waits_for_its_inputs_alone():
    graph = nx.DiGraph()
    first, second = Stage("train_baseline", dataset="digits"), Stage("report")
    graph.add_edge(second, first)
    assert needs([first, second], graph) == {first: set(), second: {first}}
    assert waiting(first, Stage("train_alone", dataset="digits")) == [set(), set()]


def test_data_sets_are_read_one_after_the_other():
    """Each of them hashes the folder of raw files, in which the other may be downloading."""
    first, second = (Stage("prepare", dataset=dataset) for dataset in ("mnist", "digits"))
    assert waiting(first, cell("c0"), second) == [set(), set(), {0}]


@pytest.mark.parametrize("command", [None, ["python -m stages.prepare", "true"], "make"])
def test_a_stage_of_another_kind_is_no_error(command):
    class Bare:
        cmd = command

    assert waiting(Bare(), cell("c0")) == [set(), set()]


# a whole run
@pytest.mark.slow
@pytest.mark.pipeline
def test_the_stages_that_charge_ledgers_are_those_that_change_one(within):
    """The names are held against what each stage of a whole run does to the ledgers' files."""

    def together_and_alone(params: dict) -> None:
        params["clients"] = {client: {"epsilon": 3.0} for client in ("c0", "c1", "c2")}
        params["partition"].update(clients=list(params["clients"]), small=None)
        params["synthesis"]["generators"] = ["dp_moments", "joint_moments"]
        params["new_clients"]["held_out"] = []

    within.edit(together_and_alone)
    ledgers = within.path / "ledgers"
    changing = set()
    call = within.call

    def noting(command: str) -> None:
        before = {path: path.read_bytes() for path in ledgers.rglob("*.jsonl")}
        call(command)
        after = {path: path.read_bytes() for path in ledgers.rglob("*.jsonl")}
        if before != after:
            changing.add(command.split()[2].removeprefix("stages."))

    within.call = noting
    within.repro()
    assert changing == CHARGING
