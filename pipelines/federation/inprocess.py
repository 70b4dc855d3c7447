"""The default engine: every client in this process, one after the other."""

from collections.abc import Callable, Iterable

from pipelines.federation.core.messages import Payload, Reply


class InProcess:
    """handlers: each client's `client_update` with its data bound; None as an answer means the client has left."""

    def __init__(self, handlers: dict[str, Callable[[Payload], Payload | None]]):
        self.handlers = handlers

    def call(self, payload: Payload) -> list[Reply]:
        return [
            Reply(client, answer) for client, answer in self.answers(payload) if answer is not None
        ]

    def answers(self, payload: Payload) -> Iterable[tuple[str, Payload | None]]:
        """Sorted by client."""
        for client in sorted(self.handlers):
            yield client, self.handlers[client](payload)

    @property
    def memories(self) -> dict:
        """{client: what it hands from round to round}, of those that remember something."""
        return {
            client: its.memory
            for client, its in sorted(self.handlers.items())
            if hasattr(its, "memory")
        }

    @memories.setter
    def memories(self, kept: dict) -> None:
        for client, memory in kept.items():
            self.handlers[client].memory = memory
