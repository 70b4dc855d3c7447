"""Seconds per round of one federation, in this process and over NVFlare on loopback, by size of the weights.

    python -m benchmarks.engine_round

Three clients answer with what they were sent, through the gate that every client has; the server takes FedAvg's mean.
Nothing is trained: what is left is what carrying costs, and beside it what kits, start and end of server and clients
take. Writes benchmarks/results/engine_round.json.
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
from pipelines.federation.core.messages import Payload, Server
from pipelines.federation.inprocess import InProcess
from pipelines.federation.network.flare import names, submit
from pipelines.federation.network.flare import server as served
from pipelines.federation.network.flare.client import Client, told
from pipelines.federation.network.flare.engine import Carrier
from pipelines.federation.network.gate import TOLD, Gate
from pipelines.federation.run_spec import Run
from pipelines.files import read_json, write_json
from pipelines.training.tensors import State

NAME, MEGABYTES, ROUNDS, LAYERS = "engine_round", (1, 10, 50), 5, 8
RUN = Run("digits", "fedavg", "dp_moments")


def weights(megabytes: int) -> State:
    """float32, in as many arrays as a small network has."""
    rng = np.random.default_rng(megabytes)
    return {
        f"layer{number}": rng.standard_normal(megabytes * 250_000 // LAYERS, np.float32)
        for number in range(LAYERS)
    }


def gate(megabytes: int) -> Gate:
    return Gate(lambda payload: Payload(payload.arrays, {"images": 1}), weights(megabytes), ROUNDS)


def seconds(engine, megabytes: int) -> float:
    """Per round."""
    history = rounds.run(
        Server(weights(megabytes)),
        fedavg.server_step,
        engine,
        rounds=ROUNDS,
        name=f"{megabytes} MB",
    )
    return history.cost["seconds"] / ROUNDS


class Echo(Client):
    """A client that is made ready with a size instead of a run."""

    @collab.publish
    @told
    def begin(self, names: dict, pool: dict) -> dict:
        """As Client.begin, whose `names` they are."""
        self.gate = gate(names["megabytes"])
        return {}


class Relay(served.Server):
    """The server of the benchmark."""

    @collab.main
    def main(self) -> None:
        clients, told, found = (
            {proxy.name: proxy for proxy in collab.clients},
            {"images": TOLD["images"]},
            {},
        )
        carrier = Carrier(clients, config.load().federation, told)
        for megabytes in MEGABYTES:
            carrier.ask("begin", names={"megabytes": megabytes}, pool={})
            found[megabytes] = seconds(carrier, megabytes)
        folder = Path(collab.workspace.get_run_dir(collab.fl_ctx.get_job_id()))
        write_json(
            folder / names.HISTORY, {str(megabytes): value for megabytes, value in found.items()}
        )


def over_nvflare(params: config.Params) -> dict[str, float]:
    """{size: seconds per round}, all sizes by the same processes."""
    names.SERVER, client = (f"benchmarks.{NAME}.{kind}" for kind in ("Relay", "Echo"))
    names.CLIENT_APP["components"][0]["path"] = client
    work = (submit.WORK / NAME).resolve()
    kits, homes = submit.laid_out(params, [], work)
    allow(kits / submit.HOST, [names.SERVER, names.CONTROLLER])
    for name in params.clients:
        allow(kits / name, [client, names.EXECUTOR])
    with submit.network(params, kits, homes, work) as network:
        return read_json(network.folder(RUN, {}) / names.HISTORY)


def allow(kit: Path, classes: list[str]) -> None:
    """Lets these classes in, and takes our deployer out, which would refuse them."""
    file = kit / "local/resources.json"
    resources = json.loads(file.read_text())
    resources["components"] = [
        part for part in resources["components"] if part["path"] != names.DEPLOYER
    ]
    file.write_text(json.dumps({**resources, "class_allow_list": classes}))


def three(params: config.Params) -> config.Params:
    return params.model_copy(update={"clients": dict(list(params.clients.items())[:3])})


def main() -> None:
    params = three(config.load())
    began = time.perf_counter()
    there, rows = over_nvflare(params), []
    around = time.perf_counter() - began - ROUNDS * sum(there.values())
    for megabytes in MEGABYTES:
        here = seconds(
            InProcess({client: gate(megabytes).answer for client in params.clients}), megabytes
        )
        found = {"inprocess_seconds": here, "nvflare_seconds": there[str(megabytes)]}
        rows.append(
            {"megabytes": megabytes, **found, "added_seconds": there[str(megabytes)] - here}
        )
    publish(NAME, rows, clients=len(params.clients), rounds=ROUNDS, around_seconds=around)


if __name__ == "__main__":
    main()
