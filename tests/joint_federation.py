"""Carries a joint release between clients in this process, through the classes that NVFlare calls."""

import contextlib
import json
from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
from apart import GENERATOR, Apart

from pipelines import config, paths
from pipelines.errors import UserError
from pipelines.federation.network.flare import client as rounds
from pipelines.federation.network.flare.names import HOME, SERVERS_CELL
from pipelines.files import read_json
from pipelines.joint import client as joint_client
from pipelines.joint import coordinator
from pipelines.joint.client import Client
from pipelines.joint.joint_run import JointRun
from stages import export_synthetic, train_generator
from stages import joint_release as stage

RUN = JointRun("own", GENERATOR)
# no messages of a secure sum
GARBAGE = [
    {"arrays": None, "scalars": {}},
    {"arrays": {"places": [1, 2]}, "scalars": {}},
    {"arrays": {"places": np.zeros(2)}, "scalars": {}},
    {"arrays": {}, "scalars": {"step": 1.5}},
    {"arrays": {}, "scalars": {"step": True}},
    {"arrays": {}, "scalars": "step"},
    {"arrays": {"places": np.array([object()])}, "scalars": {}},
]


class Federation:
    """Carries calls to clients in this process, each in its own folder.

    Attributes:
        apart: The folders.
        clients: NVFlare's object of each client.
        told: The names of the calls, in turn.
        skips: Whether the loss of a client ends the release (`on_loss: fail`) or not (`skip`).
        lost: {client: why}.
        between: Is called before each call with its name, the client and its arguments. What it
            returns is sent instead, and None is not sent at all.
    """

    def __init__(self, folders: Apart, monkeypatch):
        self.apart = folders
        self.monkeypatch = monkeypatch
        self.clients: dict[str, Client] = {}
        self.told: list[str] = []
        self.skips = False
        self.lost: dict[str, str] = {}
        self.between = lambda name, client, arguments: arguments

    def start(self) -> None:
        """Starts a new job: each client's process is new."""
        for client, project in self.apart.homes.items():
            self.monkeypatch.setenv(HOME, str(project.path))
            with contextlib.chdir(project.path):
                self.clients[client] = Client()

    def call(self, name: str, client: str, **arguments) -> dict:
        """Returns what a client answers to the server of its job."""
        here = SimpleNamespace(caller=SERVERS_CELL, site_name=client)
        self.monkeypatch.setattr(rounds, "collab", here)
        self.monkeypatch.setattr(joint_client, "collab", here)
        with contextlib.chdir(self.apart.homes[client].path):
            return getattr(self.clients[client], name)(**arguments)

    def ask(self, name: str, arguments: Mapping[str, dict]) -> dict[str, dict]:
        """Does what `NetworkEngine.ask_each` does."""
        self.told.append(name)
        answers = {}
        for client, given in arguments.items():
            sent = self.between(name, client, given)
            if sent is None:
                continue
            answer = self.call(name, client, **sent)
            if "refused" not in answer:
                answers[client] = answer
                continue
            if not self.skips:
                raise UserError(f"{client} was lost ({name}): {answer['refused']}")
            self.lost[client] = f"{name}: {answer['refused']}"
        # the last that was asked answers first, as it may over a network
        return dict(reversed(answers.items()))

    def release(self, run: JointRun = RUN) -> coordinator.Outcome:
        """Makes a joint release, in a new job."""
        self.start()
        params = config.load()
        self.skips = run.carried(params).federation.on_loss == "skip"
        return coordinator.release(run, params, self.ask, self.lost)

    @contextlib.contextmanager
    def home(self, client: str):
        """Yields a client's parameters, in its folder."""
        with contextlib.chdir(self.apart.homes[client].path):
            yield config.load()

    def entered(self, client: str) -> list[dict]:
        """Returns the lines of a client's ledger."""
        path = self.apart.homes[client].path / f"ledgers/own/{client}.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def charged(self) -> dict[str, int]:
        """Returns how many releases each ledger has entered."""
        counts = {}
        for client in self.apart.homes:
            counts[client] = sum(line["event"] == "open" for line in self.entered(client))
        return counts

    def export(self, client: str) -> dict:
        """Makes a client's set by the stages, and returns its card."""
        with self.home(client) as params:
            stage.run(params, "own")
            train_generator.run(params, "own", client, GENERATOR)
            export_synthetic.run(params, "own", client, GENERATOR)
            return read_json(paths.synthetic("own", client, GENERATOR) / "card.json")
