"""Clients of noisy training in one process, their first steps computed together.

They begin a round at the same weights, so that small lots can share passes through the network; each client's sum is
over its own records, that of a client by itself but for the last bits of a float, which the size of a pass may change
(of lots of one to three records, as measured). Noise, account, optimiser and stream stay its own. On machines of their
own there is no such call.
"""

from pipelines.federation.core.messages import Payload
from pipelines.federation.inprocess import InProcess
from pipelines.privacy.per_sample import scaled_sums


class Together(InProcess):
    """handlers: `dpsgd.Client`s of one network."""

    def answers(self, payload: Payload) -> list[tuple[str, Payload]]:
        """Of those whose budget has not gone. All are charged before anything is drawn."""
        steps = {client: self.handlers[client].begin(payload) for client in sorted(self.handlers)}
        there = {client: self.handlers[client] for client in steps if steps[client]}
        if not there:
            return []
        model = next(
            iter(there.values())
        ).model  # as the server sent it, like that of all who are there
        firsts = scaled_sums(model, [own.lot(own.drawn()) for own in there.values()])
        return [
            (client, own.end(steps[client], first))
            for (client, own), first in zip(there.items(), firsts)
        ]
