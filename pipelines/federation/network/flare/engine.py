"""Carries messages over NVFlare, and notices lost clients.

A round's payload goes to every client at once. Their answers come back sorted by client. A ping
shows within seconds that a client is lost.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from threading import Thread

from nvflare.apis.signal import Signal
from nvflare.collab.api.exceptions import CollabCallError
from nvflare.collab.api.proxy import Proxy

from pipelines.config.federation import Federation
from pipelines.errors import UserError
from pipelines.federation.core.messages import Payload, Reply
from pipelines.federation.network.gate import (
    Bounds,
    Refused,
    check_all_scalars,
    check_arrays,
    plain,
)

# Seconds between two pings of a client that has not answered yet.
PING_EVERY = 2.0


class Lost(Exception):
    """Says which client died, was too late or refused, and why."""


@dataclass
class NetworkEngine:
    """Sends calls to every client that is left.

    Attributes:
        clients: {name: NVFlare's proxy of the client}.
        settings: The parameters about the network.
        bounds: The scalars that each client sends in each round, with their ranges.
        lost: {client: why}, if `on_loss` is `skip`.
        phase: The round or the call that was sent last, for messages about a loss, and for the
            submitter.
        rounds: How many rounds there are at most, for the submitter.
    """

    clients: dict[str, Proxy]
    settings: Federation
    bounds: Bounds
    lost: dict[str, str] = field(default_factory=dict)
    phase: str = ""
    rounds: int = 0

    def __post_init__(self):
        for proxy in self.clients.values():
            # All proxies share one signal. Each gets its own here, which the common one sets, too.
            proxy.backend.abort_signal = Signal(parent=proxy.backend.abort_signal)

    def call(self, payload: Payload) -> list[Reply]:
        """Carries one round.

        A client that has left because its budget is spent gives no reply, and is not lost.

        Raises:
            Lost: With `on_loss: fail`, at the first loss; with `skip`, when no client is left.
            UserError: The payload is not finite or too large. Clients would refuse it, and would
                count as lost.
        """
        try:
            check_arrays(payload.arrays, payload.arrays)
        except Refused as error:
            number = payload.scalars["round"]
            raise UserError(
                f"Round {number} cannot begin, for the answers to the last one gave no model: "
                f"{error}."
            ) from None
        answers = self.ask("update", arrays=payload.arrays, scalars=payload.scalars)
        replies = []
        for client, answer in answers:
            if not answer:
                continue
            try:
                reply = Reply(client, Payload(answer["arrays"], answer["scalars"]))
                check_arrays(reply.payload.arrays, payload.arrays)
                check_all_scalars(reply.payload.scalars, self.bounds)
            except (Refused, KeyError) as error:
                self.lose_for(client, error)
            else:
                replies.append(reply)
        return replies

    def lose_for(self, client: str, error: Exception) -> None:
        """Counts a client as lost whose answer is not of the protocol.

        Raises:
            Lost: With `on_loss: fail`.
        """
        self._lose(client, f"its answer is not of the protocol: {error}")

    def ask(self, name: str, **arguments) -> list[tuple[str, dict]]:
        """Returns (client, answer) to one call for every client that is left, sorted by client.

        Args:
            name: The published method of `client.Client`.
            **arguments: Its arguments.

        Raises:
            Lost: As `call`.
        """
        phase = f"round {arguments['scalars']['round']}" if "scalars" in arguments else name
        answers = self._ask(phase, name, dict.fromkeys(self.clients, arguments))
        return sorted(answers.items())

    def ask_each(self, name: str, arguments: Mapping[str, dict]) -> dict[str, dict]:
        """Returns {client: answer} to a call that has arguments of its own for each client.

        Args:
            name: The published method of `client.Client`.
            arguments: By client. One that is lost is not called.

        Raises:
            Lost: As `call`.
        """
        return self._ask(name, name, arguments)

    def _ask(self, phase: str, name: str, arguments: Mapping[str, dict]) -> dict[str, dict]:
        self.phase = phase
        calls = {}
        for client in sorted(set(arguments) - set(self.lost)):
            calls[_in_thread(self._call_client, client, name, arguments[client])] = client
        answers = dict(self._gather(calls))
        if not answers:
            raise Lost("no client is left")
        return answers

    def _call_client(self, client: str, name: str, arguments: dict) -> dict:
        proxy = self.clients[client](timeout=self.settings.reply_timeout)
        answer = getattr(proxy, name)(**arguments)
        if not isinstance(answer, dict):
            raise Refused("its answer is none")
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer

    def _gather(self, calls: dict[Future, str]) -> Iterator[tuple[str, dict]]:
        """Yields (client, answer) as answers arrive, until every client has answered or is lost.

        Args:
            calls: The client of each call.
        """
        pending = set(calls)
        pings = {}
        while pending:
            done, pending = wait(pending, timeout=PING_EVERY, return_when=FIRST_COMPLETED)
            for future in done:
                error = future.exception()
                if error is None:
                    yield calls[future], future.result()
                else:
                    self._lose(calls[future], _reason(error))
            if not done:
                pending = {future for future in pending if self._is_alive(calls[future], pings)}

    def _is_alive(self, client: str, pings: dict[str, Future]) -> bool:
        """Returns what the last ping showed, and sends another if the last one is back."""
        ping = pings.get(client)
        if ping and not ping.done():
            return True
        pings[client] = _in_thread(self._ping, client)
        if ping and ping.exception():
            self._lose(client, "it does not answer")
            return False
        return True

    def _ping(self, client: str) -> None:
        self.clients[client](timeout=self.settings.ping_timeout).alive()

    def _lose(self, client: str, why: str) -> None:
        """Counts a client as lost.

        Raises:
            Lost: With `on_loss: fail`.
        """
        why = plain(why)
        # otherwise its last call would hold up the end of the job
        self.clients[client].backend.abort_signal.trigger(why)
        if self.settings.on_loss == "fail":
            raise Lost(f"{client} was lost ({self.phase}): {why}")
        self.lost[client] = f"{self.phase}: {why}"


def _in_thread(function: Callable, *arguments) -> Future:
    """Runs a function in a thread that nobody need wait for.

    A call of a dead client returns only when its time is over, hours later.
    """
    future = Future()

    def work() -> None:
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    return future


def _reason(error: BaseException) -> str:
    """Returns why a call failed.

    A client of ours raises nothing, so the network has failed if it did not refuse. NVFlare's own
    text would speak of a time-out of hours.
    """
    if isinstance(error, Refused):
        return f"it refused: {error}"
    if isinstance(error, CollabCallError):
        return "it does not answer"
    return f"{type(error).__name__}: {error}"
