"""Leads a joint release between machines: the server sees masked vectors, and then their sums."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.errors import UserError
from pipelines.federation.network.gate import Refused
from pipelines.joint.member import checked_name, message_of
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
        UserError: A client is missing or sent a name that is none, or there is no sum.
    """
    traffic = Traffic()
    # 1. every ledger is asked, then every ledger enters it
    _of_all("ready_together", roster, ask, names=names)
    name = planned.new_name()
    together = {}
    for client, answer in _of_all("begin_together", roster, ask, release=name).items():
        together[client] = _name(client, answer)
    # 2. one sum after the other, each of which the clients take before the next
    released: list[np.ndarray] = []
    while True:
        number = len(released)
        course = planned.module.course(planned.plan, released)
        if number == len(course.shapes):
            break
        shape = course.shapes[number]
        terms = course.shares.terms(name, number, roster, int(np.prod(shape)))
        total = summed(Server(terms), number, ask, traffic).reshape(shape)
        _of_all("take_together", roster, ask, number=number, total=total)
        traffic.down += total.nbytes * len(roster)
        released.append(total / planned.plan.scale)
    # 3. every client stores the generator
    _of_all("finish_together", roster, ask, together=together)
    return traffic


def _of_all(call: str, roster: Roster, ask: Ask, **arguments: Any) -> Mapping[str, dict]:
    """Returns every client's answer to a call with the same arguments.

    Raises:
        UserError: A client did not answer.
    """
    answers = ask(call, dict.fromkeys(roster.names, arguments))
    absent = sorted(set(roster.names) - set(answers))
    if absent:
        raise UserError(
            f"A joint release needs all its clients, and {', '.join(absent)} left ({call})."
        )
    # in the roster's order, whoever answered first
    return {client: answers[client] for client in roster.names}


def _name(client: str, answer: dict) -> str:
    """Returns the public name of the release in a client's ledger.

    Raises:
        UserError: It is none.
    """
    try:
        return checked_name(client, answer.get("name"))
    except Refused as refused:
        raise UserError(f"A joint release cannot go on: {refused}.") from None


def summed(server: Server, number: int, ask: Ask, traffic: Traffic) -> np.ndarray:
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
