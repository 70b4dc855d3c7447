"""Federated DP-SGD at a client: noisy steps on its private records within its own budget.

Released per step: the sum over a Poisson lot of gradients scaled to at most C (sensitivity C, add or
remove one record), with noise, and by some clip modes a noisy count (`clipping`). Divided by a public
expected lot, never by a true count. Accounted per client before each step (`account`). An empty lot
is noised and counted like any other. Noise and lots come from the operating system. Everything after
the noise is post-processing. The server's part is in `dpsgd_server`.
"""

from collections.abc import Mapping

from pipelines.config.dp import Dpsgd
from pipelines.federation.core.messages import (
    COUNT,
    Payload,
    Reply,
    ScalarRange,
)
from pipelines.federation.dp import dpsgd_server
from pipelines.federation.dp.account import ACCOUNT_TELLS, RUN_IDENTITY, Account
from pipelines.federation.dp.dpsgd_client import Client
from pipelines.federation.dp.filtered_account import Filtered
from pipelines.federation.dp.noise_schedule import Scheduled
from pipelines.federation.dp.noisy_task import NoisyTask
from pipelines.privacy.accounting import Steps
from pipelines.privacy.ledger import Identity
from pipelines.privacy.per_sample import Scaled, scaled_sum, scaled_sums

# Of the mechanism, in the ledger: raise it when the same parameters would release something else.
# These changes did not raise it, because a stored run is still valid:
# - `left` is counted at today's noise;
# - the model that is validated is the averaged one;
# - quantile clipping at another quantile than 0.5 is centred there;
# - the local_sgd rule counts all rounds;
# - a round's model is scored on no more public images than its lots hold;
# - adam_corrected's floor follows the noise.
VERSION = 3
IDENTITY = RUN_IDENTITY | Identity(
    consequences=frozenset({"epsilon_by_pld_as_planned"}),
    free=frozenset({"settings.allow_nonprivate"}),
    neutral={
        "settings.averaging": 0.0,
        "settings.clipping": "const",
        "settings.control_variates": False,
        "settings.local_steps_rule": "fixed",
        "settings.noise_control": "const",
        "settings.noise_multiplier": None,
        "settings.optimiser": "sgd",
    },
)
ACCOUNTS = {"const": Account, "scheduled": Scheduled, "falling_loss": Filtered, "plateau": Filtered}


def _step_limits(settings: Dpsgd, sizes: tuple[int, int]) -> tuple[int, int]:
    return 1, settings.rounds * max(settings.local_steps, settings.most_local_steps)


def _left_limits(settings: Dpsgd, sizes: tuple[int, int]) -> tuple[int, int]:
    return 0, _step_limits(settings, sizes)[1]


TELLS = {
    **ACCOUNT_TELLS,
    "steps": ScalarRange(int, COUNT.low, COUNT.high, _step_limits),
    "left": ScalarRange(int, 0, COUNT.high, _left_limits),
}


def new_account(
    epsilon: float, delta: float, settings: Dpsgd, before: tuple[Steps, ...] = ()
) -> Account:
    """Plans a client's noise (`NoisyAlgorithm`), by the account that goes with the noise control."""
    return ACCOUNTS[settings.noise_control](epsilon, delta, settings, before)


def server(task: NoisyTask, settings: Dpsgd) -> dpsgd_server.DpServer:
    """Returns the server's first state."""
    return dpsgd_server.start(task.start(), settings, task.public, len(task.data))


def client(task: NoisyTask, name: str, settings: Dpsgd) -> Client:
    """Returns a client's first state."""
    return Client(task.build(), task.data[name], task.accounts[name], task.sources[name])


def client_update(payload: Payload, client: Client, settings: Dpsgd) -> Payload | None:
    """Takes noisy steps from the global model: as many as were asked for and the budget allows."""
    steps = client.charge(payload.scalars)
    if not steps:
        return None
    client.load(payload)
    return client.reply(take_steps(client, steps))


def take_steps(client: Client, steps: int, clipped: Scaled | None = None) -> list[float]:
    """Takes noisy steps that were charged (Abadi et al. 2016, Algorithm 1).

    Args:
        client: whose records and account they are.
        steps: how many.
        clipped: the sum of the first lot, where it was computed with other clients'.

    Returns:
        The signal-to-noise ratio of each released gradient.
    """
    ratios = []
    for _ in range(steps):
        if clipped is None:
            lot = client.draw_lot()
            clipped = scaled_sum(client.model, lot)
        gradient = client.add_noise(clipped)
        client.step(gradient)
        client.adapt_clipping(clipped, gradient)
        ratios.append(gradient.signal_to_noise)
        clipped = None
    return ratios


def update_all(
    payload: Payload, clients: Mapping[str, Client], settings: Dpsgd
) -> dict[str, Payload]:
    """Does a round of all clients of one process, whose first steps share passes through the network.

    They begin a round at the same weights. Each client's sum is over its own records, and is that of
    the client alone but for the last bits of a float, which the size of a pass may change (for lots
    of one to three records, as measured). Noise, account, optimiser and stream stay each client's.
    On machines of their own there is no such call.

    Args:
        payload: the server's broadcast and instructions.
        clients: {name: state}, all with networks of one kind.
        settings: those of the run.

    Returns:
        {name: answer} of the clients whose budget has not gone. All are charged before anything is
        drawn.
    """
    steps = {name: clients[name].charge(payload.scalars) for name in sorted(clients)}
    remaining = {name: clients[name] for name in steps if steps[name]}
    if not remaining:
        return {}
    for client in remaining.values():
        client.load(payload)
    # any model serves: all hold what the server sent
    model = next(iter(remaining.values())).model
    sums = scaled_sums(model, [client.draw_lot() for client in remaining.values()])
    answers = {}
    for (name, client), first in zip(remaining.items(), sums):
        answers[name] = client.reply(take_steps(client, steps[name], first))
    return answers


def server_step(state: dpsgd_server.DpServer, replies: list[Reply]) -> dpsgd_server.DpServer:
    """Averages what clients released, and plans the next round."""
    return dpsgd_server.step(state, replies)
