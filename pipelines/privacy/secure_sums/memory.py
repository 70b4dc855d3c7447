"""Holds what a client keeps between the steps of a round. It never leaves the client.

Whoever reads it before the round ends can take off the client's masks. After the last step keys,
seed and shares are gone from it. The last request and reply stay, so that the same question gets the
same answer.
"""

import io
import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pipelines.privacy.secure_sums.announced import Announced
from pipelines.privacy.secure_sums.messages import Message, Places


@dataclass(frozen=True, repr=False)
class Memory:
    """Holds a client's part of a round. Its text shows the step alone.

    Attributes:
        step: The last step that was answered; 0 before the first.
        request: The digest of the request of that step.
        reply: The answer to it.
        channel_key, mask_key: Private keys, 32 bytes each.
        seed: The seed of the self mask, 32 bytes.
        announced: The public keys of all clients; None before step 2.
        sharers: Who sent shares.
        shares: Those that others have for this client, uint8 [K, 66]: the first half of a row is
            a share of that client's mask key, the second of its seed. None before step 2.
        survivors: The set that this client signed.
    """

    step: int = 0
    request: bytes = b""
    reply: Message | None = None
    channel_key: bytes = b""
    mask_key: bytes = b""
    seed: bytes = b""
    announced: Announced | None = None
    sharers: Places = ()
    shares: np.ndarray | None = None
    survivors: Places = ()

    def __repr__(self) -> str:
        return f"Memory(step={self.step})"

    def as_bytes(self) -> bytes:
        """Returns the content of a file that `parsed` reads."""
        arrays = {}
        for field in fields(self):
            arrays |= _arrays(field.name, getattr(self, field.name))
        file = io.BytesIO()
        np.savez(file, **arrays)
        return file.getvalue()


def parsed(content: bytes) -> Memory:
    """Returns the memory of a file's content.

    Raises:
        ValueError: The content is damaged.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = dict(file)
        values: dict[str, Any] = {
            "step": int(arrays["step"]),
            "sharers": tuple(arrays["sharers"].tolist()),
            "survivors": tuple(arrays["survivors"].tolist()),
            "shares": arrays.get("shares"),
        }
        for name in ("request", "channel_key", "mask_key", "seed"):
            values[name] = arrays[name].tobytes()
        if "reply" in arrays:
            replied = _below(arrays, "reply.")
            values["reply"] = Message(replied, json.loads(arrays["reply"].tobytes()))
        announced = _below(arrays, "announced.")
        if announced:
            values["announced"] = Announced(**announced)
        return Memory(**values)
    except Exception as error:
        raise ValueError(f"no memory of a round: {type(error).__name__}") from None


def _arrays(name: str, value: object) -> dict[str, np.ndarray]:
    """Returns a field as named arrays; none for None."""
    if value is None:
        return {}
    if isinstance(value, bytes):
        return {name: np.frombuffer(value, np.uint8)}
    if isinstance(value, Message):
        arrays = {f"{name}.{key}": array for key, array in value.arrays.items()}
        return {**arrays, name: np.frombuffer(json.dumps(value.scalars).encode(), np.uint8)}
    if isinstance(value, Announced):
        return {f"{name}.{key}": array for key, array in value._asdict().items()}
    return {name: np.asarray(value, None if isinstance(value, np.ndarray) else np.int64)}


def _below(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Returns the arrays whose names begin so, without the prefix."""
    found = {}
    for name, array in arrays.items():
        if name.startswith(prefix):
            found[name.removeprefix(prefix)] = array
    return found
