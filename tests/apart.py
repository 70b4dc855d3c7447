"""Makes clients on machines of their own, for tests of a joint release between them."""

import contextlib
import shutil
from functools import partial
from pathlib import Path
from typing import NamedTuple

import parameter_files
from project import Project

from pipelines import paths
from pipelines.privacy.secure_sums import signing_key

CLIENTS = ("c0", "c1", "c2")
GENERATOR = "joint_moments"
EPSILON = 3.0


class Apart(NamedTuple):
    """Holds the folders of a federation.

    Attributes:
        whole: Has everybody's records. Nobody has such a folder; tests compare with it.
        server: Has all clients' names and no record. The submitter's is like it.
        homes: {client: its folder, whose parameters name itself alone}.
    """

    whole: Project
    server: Project
    homes: dict[str, Project]

    def edit(self, change) -> None:
        """Changes the parameters of all sides."""
        for project in (self.whole, self.server, *self.homes.values()):
            project.edit(change)


def made(checkout: Path, path: Path, clients: tuple[str, ...] = CLIENTS) -> Apart:
    """Deals the records of a checkout to clients, and gives each of them a folder of its own."""
    whole = Project(path / "whole")
    shutil.copytree(checkout, whole.path)
    whole.edit(partial(_together, clients))
    whole.here("prepare", "--dataset", "own")
    whole.here("partition", "--dataset", "own")
    folders = {name: Project(path / name) for name in ("server", *clients)}
    roster = {}
    for client in clients:
        shard = paths.shards("own") / client
        shutil.copytree(whole.path / shard, folders[client].path / shard)
        with contextlib.chdir(folders[client].path):
            roster[client] = signing_key.made(client).public.hex()
    for name, project in folders.items():
        parameter_files.copy_files(whole.path, project.path)
        project.edit(partial(_elsewhere, roster))
        if name in clients:
            project.edit(partial(_alone, name))
    return Apart(whole, folders.pop("server"), folders)


def copied(federation: Apart, path: Path) -> Apart:
    """Copies all folders of a federation."""
    folders = {"whole": federation.whole, "server": federation.server, **federation.homes}
    for name, project in folders.items():
        shutil.copytree(project.path, path / name)
        folders[name] = Project(path / name)
    return Apart(folders.pop("whole"), folders.pop("server"), folders)


def _together(clients: tuple[str, ...], params: dict) -> None:
    params["clients"] = {client: {"epsilon": EPSILON} for client in clients}
    params["partition"].update(clients=list(clients), small=None)
    params["synthesis"]["generators"] = [GENERATOR]
    params["baselines"]["algorithms"] = ["pooled"]
    params["dp_baselines"]["algorithms"] = ["dpsgd_head"]
    params["new_clients"]["held_out"] = []


def _elsewhere(roster: dict[str, str], params: dict) -> None:
    params["federation"].update(engine="nvflare", mode="remote", roster=roster)
    params["federation"].update(start_timeout=60.0, ping_timeout=5.0)


def _alone(client: str, params: dict) -> None:
    params["clients"] = {client: params["clients"][client]}
    params["partition"]["clients"] = [client]
