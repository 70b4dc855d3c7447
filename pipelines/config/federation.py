"""The block of params.yaml about what carries the messages between clients and server."""

from typing import Literal

from pipelines.config.values import Block, Seconds


class Federation(Block):
    engine: Literal["inprocess", "nvflare"]
    mode: Literal["local", "remote"]
    on_loss: Literal["fail", "skip"]
    start_timeout: Seconds
    reply_timeout: Seconds
    ping_timeout: Seconds
