"""Leads a joint release between machines: the server sees masked vectors, and then their sums."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from pipelines.config import Params
from pipelines.errors import UserError
from pipelines.federation.network.gate import Refused
from pipelines.joint.joint_run import JointRun
from pipelines.joint.member import checked_name, message_of
from pipelines.privacy.secure_sums.messages import Message
from pipelines.privacy.secure_sums.refusals import Refusal
from pipelines.privacy.secure_sums.roster import Roster
from pipelines.privacy.secure_sums.server import Server
from pipelines.seal import Seal, chained, roster_of

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


@dataclass(frozen=True)
class Outcome:
    """Says how a release went.

    Attributes:
        traffic: What went through the server.
        gone: {client that dropped out: why, or the call that it did not answer}.
    """

    traffic: Traffic
    gone: dict[str, str]


class Members:
    """Calls the clients of a release, and knows which of them are left.

    Args:
        roster: The clients.
        fewest: How many must be left.
        ask: Reaches them.
        lost: {client: why}, which grows as the carrier loses clients.

    Attributes:
        left: The names of those that have answered every call, in the roster's order.
        gone: {client: why it left, or the call that it did not answer}.
        lost: As given.
    """

    def __init__(self, roster: Roster, fewest: int, ask: Ask, lost: Mapping[str, str]):
        self.left = roster.names
        self.gone: dict[str, str] = {}
        self._fewest = fewest
        self._ask = ask
        self.lost = lost

    def tell(self, call: str, **arguments: Any) -> dict[str, dict]:
        """Returns the answer of each client that is left to a call with the same arguments.

        Raises:
            UserError: Too few have answered.
        """
        answers = self.ask_each(call, dict.fromkeys(self.left, arguments))
        self.keep(answers, call)
        # in the roster's order, whoever answered first
        return {client: answers[client] for client in self.left}

    def ask_each(self, call: str, arguments: Mapping[str, dict]) -> Mapping[str, dict]:
        """Returns the answers to a call with arguments of its own for each client.

        Args:
            call: The method.
            arguments: By client. One that is gone is not called.
        """
        left = set(self.left)
        return self._ask(call, {name: given for name, given in arguments.items() if name in left})

    def keep(self, names: Collection[str], call: str) -> None:
        """Goes on with these clients alone.

        Args:
            names: The clients that have answered.
            call: What the others did not answer.

        Raises:
            UserError: They are too few.
        """
        absent = [client for client in self.left if client not in names]
        self.gone |= {client: self.lost.get(client, call) for client in absent}
        self.left = tuple(client for client in self.left if client in names)
        if len(self.left) >= self._fewest:
            return
        clients = len(self.left) + len(self.gone)
        needed = "all its clients"
        if self._fewest < clients:
            needed = f"{self._fewest} of its {clients} clients"
        reasons = [f"{client} left ({why})" for client, why in sorted(self.gone.items())]
        raise UserError(f"A joint release needs {needed}, and {', '.join(reasons)}.")


def release(
    run: JointRun,
    params: Params,
    ask: Ask,
    lost: Mapping[str, str] = MappingProxyType({}),
) -> Outcome:
    """Has the clients make a joint release, and hands its totals and names out to them.

    No ledger is charged before each client has said that its own would take the release. Clients
    that drop out after they entered it have paid. So many may drop out as the plan says.

    Args:
        run: The release.
        params: The server's parameters.
        ask: Reaches the clients.
        lost: As of `Members`.

    Raises:
        UserError: Too few clients are left, or there is no sum.
    """
    planned = run.planned(params)
    roster = roster_of(params)
    traffic = Traffic()
    # 1. every ledger is asked, then every ledger enters it
    Members(roster, len(roster), ask, lost).tell("ready_together", names=run.names)
    members = Members(roster, planned.plan.shares.threshold, ask, lost)
    name = planned.new_name()
    together = _names(members.tell("begin_together", release=name))
    members.keep(together, "begin_together")
    # 2. one sum after the other, each of which the clients take before the next
    released: list[np.ndarray] = []
    totals = run.opening(params)
    while True:
        number = len(released)
        course = planned.module.course(planned.plan, released)
        if number == len(course.shapes):
            break
        shape = course.shapes[number]
        terms = course.shares.terms(name, number, roster, int(np.prod(shape)), totals)
        server = Server(terms)
        total = summed(server, number, members, traffic).reshape(shape)
        summands = len(server.survivors)
        members.tell("take_together", number=number, total=total, summands=summands)
        traffic.down += total.nbytes * len(members.left)
        totals = chained(totals, number, total, summands)
        released.append(planned.plan.of_all_clients(total, summands))
    # 3. every client signs what it was told, and stores the generator if all have signed alike
    seal = Seal(name, totals, together)
    signatures = {}
    for client, answer in members.tell("sign_together", together=together).items():
        if seal.is_signed(roster, client, answer.get("signature")):
            signatures[client] = answer["signature"]
    members.keep(signatures, "sign_together")
    members.tell("finish_together", signatures=signatures)
    return Outcome(traffic, members.gone)


def _names(answers: Mapping[str, dict]) -> dict[str, str]:
    """Returns the public name of the release in the ledger of each client that sent one."""
    names = {}
    for client, answer in answers.items():
        with suppress(Refused):
            names[client] = checked_name(client, answer.get("name"))
    return names


def summed(server: Server, number: int, members: Members, traffic: Traffic) -> np.ndarray:
    """Runs the round of one sum, and returns it, int64 [n].

    Args:
        server: A new one.
        number: Which sum of the release it is.
        members: The clients. Those that drop out of the round are gone after it.
        traffic: Is added to.

    Raises:
        UserError: There is no sum.
    """
    while not server.done:
        calls = {}
        for client in server.asked:
            request = server.request(client)
            calls[client] = {"number": number, "arrays": request.arrays, "scalars": request.scalars}
            if client in members.left:
                traffic.down += request.bytes
        replies = {}
        answers = members.ask_each("step_together", calls)
        for client, answer in answers.items():
            replies[client] = _reply(answer)
            if isinstance(replies[client], Message):
                traffic.up += replies[client].bytes
        for client in set(server.asked) - set(answers):
            if client in members.lost:
                replies[client] = Refusal(members.lost[client])
        try:
            server.take(replies)
        except Refusal as refusal:
            raise UserError(f"The joint release has no sum: {refusal}") from None
    members.keep(server.asked, "step_together")
    return server.total


def _reply(answer: dict) -> Message | Refusal:
    """Returns a client's answer as a message, or why it is none."""
    try:
        return message_of(answer.get("arrays"), answer.get("scalars"))
    except Refused as refused:
        return Refusal(str(refused))
