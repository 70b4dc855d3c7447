"""Makes a project with three clients, for tests over a real network."""

import shutil
from pathlib import Path

from project import Project

from pipelines.federation.network.flare import processes
from pipelines.federation.run_spec import RunSpec

GENERATOR = "dp_moments"
CLIENTS = ["c0", "c1", "c2"]
PPPFL, FEDAVG, SCAFFOLD, SDA_FL, POOLED = (
    RunSpec("own", method, GENERATOR)
    for method in ("pppfl", "fedavg", "scaffold", "sda_fl", "pooled")
)
NOISY = RunSpec("own", "dpsgd")
HEAD = RunSpec("own", "dpsgd_head")


def three_clients(params: dict) -> None:
    params["clients"] = {client: {"epsilon": 5.0} for client in CLIENTS}
    params["partition"].update(clients=CLIENTS, small=None)
    params["synthesis"]["generators"] = [GENERATOR]
    params["baselines"]["algorithms"] = ["random_init", "fedavg", "scaffold", "sda_fl", "pooled"]
    params["dp_baselines"]["algorithms"] = ["dpsgd", "dpsgd_head"]
    params["new_clients"]["held_out"] = []
    # the warm start at the server, the rounds at the clients
    params["meta"]["where"] = "clients"
    for block in (
        params["meta"],
        *map(params["dp_baselines"].get, ("dpsgd", "dpsgd_head")),
        *map(params["baselines"].get, ("fedavg", "scaffold", "sda_fl")),
    ):
        block["rounds"] = 3
    params["federation"].update(start_timeout=60.0, ping_timeout=5.0)


def exported(checkout: Path, path: Path) -> Project:
    """Returns a copy of `checkout` with three clients and their exported sets, and no model yet."""
    shutil.copytree(checkout, path)
    made = Project(path)
    made.edit(three_clients)
    made.export(CLIENTS, GENERATOR)
    # The sets are made, so only noisy training draws this noise.
    made.edit(lambda params: params["privacy"].update(noise="seeded_for_tests"))
    return made


def left_in(project: Project) -> list[int]:
    return processes._working_in(project.path)
