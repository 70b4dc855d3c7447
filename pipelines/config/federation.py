"""Declares the settings about the messages between clients and server."""

from typing import Literal

from pipelines.config.values import Block, Seconds


class Federation(Block):
    """Says which engine carries messages, what a lost client means, and how long a side waits.

    gather_sets: Whether a network's server also gathers the exported sets where the training leaves
    them at the clients, so that they go out with the model.
    """

    engine: Literal["inprocess", "nvflare"] = "inprocess"
    mode: Literal["local", "remote"] = "local"
    on_loss: Literal["fail", "skip"] = "fail"
    gather_sets: bool = False
    start_timeout: Seconds
    reply_timeout: Seconds
    ping_timeout: Seconds
