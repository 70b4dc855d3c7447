"""Leads a joint release between machines: the server sees masked vectors, and then their sums."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.errors import UserError
from pipelines.federation.network.gate import Refused
from pipelines.joint.member import message_of
from pipelines.privacy.secure_sums.messages import Message
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Roster
from pipelines.privacy.secure_sums.server import Server
from pipelines.synthesis.joint_release import JointRelease

# Calls a method of each client with arguments of its own, and returns the answers that came.
Ask = Callable[[str, Mapping[str, dict]], Mapping[str, dict]]


@dataclass
class Traffic:
    """Counts the bytes of arrays that went through the server.

    Attributes:
        up: From all clients.
        down: To all clients.
    """

    up: int = 0
    down: int = 0


def release(planned: JointRelease, names: dict, roster: Roster, ask: Ask) -> Traffic:
    """Has the clients make a joint release, and hands its totals and names out to them.

    No ledger is charged before each client has said that its own would take the release.

    Args:
        planned: The release by the server's parameters.
        names: Its name, as `JointRun.names`.
        roster: The clients.
        ask: Reaches them.

    Returns:
        What went through.

    Raises:
        UserError: There is no sum, and why.
    """
    everyone = roster.names
    traffic = Traffic()
    # 1. every ledger is asked, then every ledger enters it
    ready = ask("ready_together", _alike(everyone, names=names))
    absent = sorted(set(everyone) - set(ready))
    if absent:
        raise UserError(f"A joint release needs all its clients, and {', '.join(absent)} left.")
    name = planned.new_name()
    begun = ask("begin_together", _alike(everyone, release=name))
    together = {client: answer.get("name") for client, answer in begun.items()}
    # 2. one sum after the other, each of which the clients take before the next
    for number, shape in enumerate(planned.module.sum_shapes(planned.plan)):
        terms = planned.plan.shares.terms(name, number, roster, int(np.prod(shape)))
        total = _total(Server(terms), number, ask, traffic).reshape(shape)
        ask("take_together", _alike(everyone, number=number, total=total))
        traffic.down += total.nbytes * len(everyone)
    # 3. every client stores the generator
    ask("finish_together", _alike(everyone, together=together))
    return traffic


def _alike(clients: Iterable[str], **arguments: Any) -> dict[str, dict]:
    """Returns the same arguments for each client."""
    return dict.fromkeys(clients, arguments)


def _total(server: Server, number: int, ask: Ask, traffic: Traffic) -> np.ndarray:
    """Runs the round of one sum, and returns it, int64 [n].

    Args:
        server: A new one.
        number: Which sum of the release it is.
        ask: Reaches the clients.
        traffic: Is added to.

    Raises:
        UserError: There is no sum.
    """
    while not server.done:
        calls = {}
        for client in server.asked:
            request = server.request(client)
            traffic.down += request.bytes
            calls[client] = {"number": number, "arrays": request.arrays, "scalars": request.scalars}
        replies = {}
        for client, answer in ask("step_together", calls).items():
            replies[client] = _reply(answer)
            if isinstance(replies[client], Message):
                traffic.up += replies[client].bytes
        try:
            server.take(replies)
        except Refusal as refusal:
            raise UserError(f"The joint release has no sum: {refusal}") from None
    return server.total


def _reply(answer: dict) -> Message | Refusal:
    """Returns a client's answer as a message, or why it is none."""
    try:
        return message_of(answer.get("arrays"), answer.get("scalars"))
    except Refused as refused:
        return Refusal(str(refused))
