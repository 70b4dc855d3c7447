"""Declares the settings about the messages between clients and server."""

from typing import Literal

from pipelines.config.values import Block, Seconds


class Federation(Block):
    """Says which engine carries messages, what a lost client means, and how long a side waits."""

    engine: Literal["inprocess", "nvflare"] = "inprocess"
    mode: Literal["local", "remote"] = "local"
    on_loss: Literal["fail", "skip"] = "fail"
    start_timeout: Seconds
    reply_timeout: Seconds
    ping_timeout: Seconds
