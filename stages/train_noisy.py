"""Trains one shared model by noisy messages of clients on other machines, to be handed out.

DVC does not run it. Each client's own process enters the whole budget in its ledger before it
answers.
"""

import math

from pipelines import paths
from pipelines.config import Params
from pipelines.config.values import mistake
from pipelines.datasets.salting import add_salt_file
from pipelines.errors import UserError
from pipelines.federation import health
from pipelines.federation.engine import networked
from pipelines.federation.home import results
from pipelines.federation.noisy_run import NoisyRun
from pipelines.federation.run_spec import RunSpec
from pipelines.files import new_folder, write_csv, write_json
from stages.cli import main


def run(params: Params, dataset: str, algorithm: str) -> None:
    """Runs the rounds and writes the last model, its curve, privacy and health.

    Args:
        params: The parameters.
        dataset: The data set's name.
        algorithm: A noisy algorithm that is served between machines.

    Raises:
        UserError: `federation` names no engine and mode of other machines, or the run failed.
    """
    federation = params.federation
    if (federation.engine, federation.mode) != ("nvflare", "remote"):
        raise mistake(
            "federation.mode",
            federation.mode if federation.engine == "nvflare" else federation.engine,
            "'remote' with engine 'nvflare' here: on one machine the stage train_dp_baseline "
            "trains and adapts the model",
        )
    why = params.left_out(dataset, algorithm)
    if why:
        raise UserError(why)
    done = networked(params, RunSpec(dataset, algorithm))
    model = done.history.models[-1]
    verdict = NoisyRun(params, dataset, algorithm).health(model)
    privacy = _privacy(list(params.clients), done.spent)
    name = paths.of_noisy_method(algorithm)
    with new_folder(paths.initial(dataset, name)) as folder:
        results.save_models(folder / "rounds.safetensors", [model])
        write_csv(folder / "rounds.csv", done.history.curves)
        write_json(folder / "privacy.json", privacy)
        write_json(folder / health.FILE, verdict.as_dict())
    with new_folder(paths.cost(dataset, name)) as folder:
        write_json(folder / paths.COST, done.history.cost)
        add_salt_file(folder, dataset, "all-clients")
    print(f"{dataset} {algorithm}: {done.history.cost['rounds']} rounds; {_spent(privacy)}")
    print(f"{dataset} {algorithm}: the model to hand out is {paths.initial(dataset, name)}")
    print(verdict.told(f"{dataset} {algorithm}"), end="")


def _privacy(clients: list[str], spent: dict[str, dict]) -> dict:
    """Returns what the clients said that they spent. Each one's ledger has its statement and delta.

    A client that was lost said nothing, so that its epsilon is not known here.

    Args:
        clients: All clients of the run.
        spent: {client: what its account came to}.
    """
    epsilons = {}
    for client in clients:
        epsilons[client] = spent.get(client, {}).get("epsilon_spent", math.inf)
    largest = max(epsilons.values())
    # a client on another machine serves no run with noise for tests
    guarantee = "formal" if math.isfinite(largest) else "none"
    return {
        "epsilon_max": largest,
        "guarantee": guarantee,
        "epsilon_by_client": epsilons,
        "unit": "record",
        "relation": "add or remove one record",
        "said_by": "the clients, each of its own account; its ledger has the statement",
    }


def _spent(privacy: dict) -> str:
    """Returns what the clients spent, in words."""
    phrases = []
    for client, epsilon in privacy["epsilon_by_client"].items():
        phrases.append(
            f"{client} {epsilon:g}" if math.isfinite(epsilon) else f"{client} did not say"
        )
    return f"epsilon by client: {', '.join(phrases)}"


if __name__ == "__main__":
    main(run, "dataset", "algorithm", block="dp_baselines")
