"""Messages over NVFlare: a round's payload to every client at once, their answers sorted by client, the lost ones
noticed by a ping within seconds."""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from threading import Thread

from nvflare.apis.signal import Signal
from nvflare.collab.api.exceptions import CollabCallError
from nvflare.collab.api.proxy import Proxy

from pipelines.config.federation import Federation
from pipelines.errors import UserError
from pipelines.federation.core.messages import Payload, Reply
from pipelines.federation.network.gate import Bounds, Refused, check_all_told, check_arrays, plain

PING_EVERY = 2.0  # seconds


class Lost(Exception):
    """A client died, was too late, or refused. The text says which, and why."""


@dataclass
class Carrier:
    """clients: {name: NVFlare's proxy}. told: what each client tells in each round. lost: {client: why}, by `on_loss:
    skip`. moment: what was asked last."""

    clients: dict[str, Proxy]
    settings: Federation
    told: Bounds
    lost: dict[str, str] = field(default_factory=dict)
    moment: str = ""

    def __post_init__(self):
        for proxy in (
            self.clients.values()
        ):  # all share one signal: each gets its own, which the common one sets, too
            proxy.backend.abort_signal = Signal(parent=proxy.backend.abort_signal)

    def call(self, payload: Payload) -> list[Reply]:
        """One round. A client that has left for want of budget gives no reply, and is not lost.

        Raises:
            Lost: by `on_loss: fail`, at the first loss; by `skip`, when nobody is left.
            UserError: what would be sent is not finite or too large, which clients refuse and would be lost for.
        """
        try:
            check_arrays(payload.arrays, payload.arrays)
        except Refused as error:
            number = payload.scalars["round"]
            raise UserError(
                f"Round {number} cannot begin, for the answers to the last one gave no model: {error}."
            ) from None
        answers = self.ask("update", arrays=payload.arrays, scalars=payload.scalars)
        replies = []
        for client, answer in answers:
            if not answer:
                continue
            try:
                reply = Reply(client, Payload(answer["arrays"], answer["scalars"]))
                check_arrays(reply.payload.arrays, payload.arrays)
                check_all_told(reply.payload.scalars, self.told)
            except (Refused, KeyError) as error:
                self.lose_for(client, error)
            else:
                replies.append(reply)
        return replies

    def lose_for(self, client: str, error: Exception) -> None:
        """Counts a client as lost whose answer is not of the protocol.

        Raises:
            Lost: by `on_loss: fail`.
        """
        self._lose(client, f"its answer is not of the protocol: {error}")

    def ask(self, name: str, **arguments) -> list[tuple[str, dict]]:
        """The answers to one call of every client that is left, sorted by client.

        Raises:
            Lost: as `call`.
        """
        self.moment = f"round {arguments['scalars']['round']}" if "scalars" in arguments else name
        found = dict(
            self._gather(
                {_begun(self._one, client, name, arguments): client for client in self._left()}
            )
        )
        if not found:
            raise Lost("no client is left")
        return sorted(found.items())

    def _left(self) -> list[str]:
        return sorted(set(self.clients) - set(self.lost))

    def _one(self, client: str, name: str, arguments: dict) -> dict:
        proxy = self.clients[client](timeout=self.settings.reply_timeout)
        answer = getattr(proxy, name)(**arguments)
        if not isinstance(answer, dict) or "refused" in answer:
            raise Refused(answer["refused"] if isinstance(answer, dict) else "its answer is none")
        return answer

    def _gather(self, asked: dict[Future, str]) -> Iterator[tuple[str, dict]]:
        pending, pings = set(asked), {}
        while pending:
            done, pending = wait(pending, timeout=PING_EVERY, return_when=FIRST_COMPLETED)
            for future in done:
                client, error = asked[future], future.exception()
                if error is None:
                    yield client, future.result()
                else:
                    self._lose(
                        client,
                        f"it refused: {error}" if isinstance(error, Refused) else _told(error),
                    )
            if not done:
                pending = {future for future in pending if self._alive(asked[future], pings)}

    def _alive(self, client: str, pings: dict[str, Future]) -> bool:
        """What the last ping said, if it is back; then another goes out."""
        ping = pings.get(client)
        if ping and not ping.done():
            return True
        pings[client] = _begun(self._ping, client)
        if ping and ping.exception():
            self._lose(client, "it does not answer")
            return False
        return True

    def _ping(self, client: str) -> None:
        self.clients[client](timeout=self.settings.ping_timeout).alive()

    def _lose(self, client: str, why: str) -> None:
        why = plain(why)
        self.clients[client].backend.abort_signal.trigger(
            why
        )  # or its last call would hold up the job's end
        if self.settings.on_loss == "fail":
            raise Lost(f"{client} was lost ({self.moment}): {why}")
        self.lost[client] = f"{self.moment}: {why}"


def _begun(function: Callable, *arguments) -> Future:
    """In a thread that nobody need wait for: a call of a dead client returns when its time is over, hours later."""
    future = Future()

    def work() -> None:
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    return future


def _told(error: BaseException) -> str:
    """A client of ours raises nothing: what failed then is the network, and NVFlare speaks of time-outs of hours."""
    return (
        "it does not answer"
        if isinstance(error, CollabCallError)
        else f"{type(error).__name__}: {error}"
    )
