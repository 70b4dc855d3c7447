"""Declares the settings about the messages between clients and server."""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from pipelines.config.values import Block, Name, Seconds

# clients of a joint release, at least, as privacy/secure_sums/terms.py says why
FEWEST = 3
# of Ed25519, as hexadecimal digits
SIGNING_KEY = re.compile(r"[0-9a-f]{64}")


def _signing_key(value: object) -> str:
    if not isinstance(value, str) or not SIGNING_KEY.fullmatch(value):
        rule = (
            "64 hexadecimal digits in lower case, as "
            "`python -m pipelines.privacy.secure_sums CLIENT` prints them"
        )
        raise PydanticCustomError("rule", "must be {rule}", {"rule": rule})
    return value


class Federation(Block):
    """Says which engine carries messages, what a lost client means, and how long a side waits.

    gather_sets: Whether a network's server also gathers the exported sets where the training leaves
    them at the clients, so that they go out with the model.
    roster: By client, the public key of its signatures in a secure sum over a network. It says who
    releases together there.
    """

    engine: Literal["inprocess", "nvflare"] = "inprocess"
    mode: Literal["local", "remote"] = "local"
    on_loss: Literal["fail", "skip"] = "fail"
    gather_sets: bool = False
    roster: dict[Name, Annotated[str, BeforeValidator(_signing_key)]] = Field(default_factory=dict)
    start_timeout: Seconds
    reply_timeout: Seconds
    ping_timeout: Seconds

    @property
    def is_remote(self) -> bool:
        """Returns whether server and clients run on machines of their own."""
        return self.engine == "nvflare" and self.mode == "remote"
