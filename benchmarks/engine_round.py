"""Measures seconds per round in this process and over NVFlare on loopback, by size of the weights.

    python -m benchmarks.engine_round

Three clients send back the weights that they receive, through the gate that every client has. The
server takes FedAvg's mean. Nothing is trained, so the time is that of carrying messages. Beside it
stands the time for kits, start and end of server and clients.
"""

import json
import time
from pathlib import Path

import numpy as np
from nvflare.collab import collab

from benchmarks.common import publish
from pipelines import config
from pipelines.federation.algorithms import fedavg
from pipelines.federation.core import rounds
from pipelines.federation.core.messages import COUNT, Payload, ServerState, any_bounds
from pipelines.federation.inprocess import InProcess
from pipelines.federation.network.flare import names, submit
from pipelines.federation.network.flare import server as served
from pipelines.federation.network.flare.client import Client, answer_or_refusal
from pipelines.federation.network.flare.engine import NetworkEngine
from pipelines.federation.network.gate import Gate
from pipelines.federation.run_spec import RunSpec
from pipelines.files import read_json, write_json
from pipelines.training.tensors import State

NAME = "engine_round"
MEGABYTES = (1, 10, 50)
ROUNDS = 5
# Number of arrays of the weights, as many as a small network has.
LAYERS = 8
CLIENTS = 3
RUN = RunSpec("digits", "fedavg", "dp_moments")


def weights(megabytes: int) -> State:
    """Returns random weights as float32."""
    rng = np.random.default_rng(megabytes)
    arrays = {}
    for number in range(LAYERS):
        count = megabytes * 250_000 // LAYERS
        arrays[f"layer{number}"] = rng.standard_normal(count, np.float32)
    return arrays


def gate(megabytes: int) -> Gate:
    """Returns the gate of a client that sends back the weights that it receives."""

    def update(payload: Payload) -> Payload:
        return Payload(payload.arrays, {"images": 1})

    return Gate(update, weights(megabytes), ROUNDS, {"images": COUNT})


def seconds(engine, megabytes: int) -> float:
    """Returns the seconds per round over an engine."""
    history = rounds.run(
        ServerState(weights(megabytes)),
        fedavg.server_step,
        engine,
        rounds=ROUNDS,
        name=f"{megabytes} MB",
    )
    return history.cost["seconds"] / ROUNDS


class Echo(Client):
    """Is a client that begins with a size instead of a run."""

    @collab.publish
    @answer_or_refusal
    def begin(self, names: dict, pool: dict) -> dict:
        """Begins as `Client.begin` does; `names` holds the size."""
        self.gate = gate(names["megabytes"])
        return {}


class Relay(served.Server):
    """Is the server of the benchmark."""

    @collab.main
    def main(self) -> None:
        """Measures all sizes and writes {size: seconds per round} into the job's folder."""
        clients = {proxy.name: proxy for proxy in collab.clients}
        engine = NetworkEngine(clients, config.load().federation, any_bounds({"images": COUNT}))
        per_round = {}
        for megabytes in MEGABYTES:
            engine.ask("begin", names={"megabytes": megabytes}, pool={})
            per_round[str(megabytes)] = seconds(engine, megabytes)
        folder = Path(collab.workspace.get_run_dir(collab.fl_ctx.get_job_id()))
        write_json(folder / names.HISTORY, per_round)


def over_nvflare(
    params: config.Params, module: str = NAME, server: str = "Relay", client: str = "Echo"
) -> dict:
    """Returns what a benchmark's server leaves after a job on this machine.

    Here it is {size: seconds per round}; the same processes measure all sizes.

    Args:
        params: The parameters. All their clients are started.
        module: The benchmark's name.
        server: The class of the server in this module.
        client: The class of each client in it.
    """
    names.SERVER = f"benchmarks.{module}.{server}"
    client = f"benchmarks.{module}.{client}"
    names.CLIENT_APP["components"][0]["path"] = client
    work = (submit.WORK / module).resolve()
    kits, homes = submit.lay_out(params, [], work)
    allow(kits / submit.HOST, [names.SERVER, names.CONTROLLER])
    for name in params.clients:
        allow(kits / name, [client, names.EXECUTOR])
    with submit.network(params, kits, homes, work) as network:
        return read_json(network.folder(RUN, {}) / names.HISTORY)


def allow(kit: Path, classes: list[str]) -> None:
    """Allows a kit to make these classes, and removes the product's deployer, which refuses them."""
    file = kit / "local/resources.json"
    resources = json.loads(file.read_text())
    parts = []
    for part in resources["components"]:
        if part["path"] != names.DEPLOYER:
            parts.append(part)
    file.write_text(json.dumps({**resources, "components": parts, "class_allow_list": classes}))


def three(params: config.Params) -> config.Params:
    """Returns the parameters with their first three clients."""
    clients = dict(list(params.clients.items())[:CLIENTS])
    return params.model_copy(update={"clients": clients})


def main() -> None:
    """Measures both engines, prints and stores the table."""
    params = three(config.load())
    start = time.perf_counter()
    nvflare_seconds = over_nvflare(params)
    around = time.perf_counter() - start - ROUNDS * sum(nvflare_seconds.values())
    rows = []
    for megabytes in MEGABYTES:
        handlers = {client: gate(megabytes).answer for client in params.clients}
        inprocess = seconds(InProcess(handlers), megabytes)
        nvflare = nvflare_seconds[str(megabytes)]
        row = {"megabytes": megabytes, "inprocess_seconds": inprocess, "nvflare_seconds": nvflare}
        rows.append({**row, "added_seconds": nvflare - inprocess})
    publish(NAME, rows, clients=len(params.clients), rounds=ROUNDS, around_seconds=around)


if __name__ == "__main__":
    main()
