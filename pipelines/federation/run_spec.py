"""What one federated run is, by name: what both sides of a network derive all else of it from, each by its own
parameters."""

import hashlib
import json
from collections.abc import Mapping, Sized
from dataclasses import asdict, dataclass

from pipelines import methods
from pipelines.config import Params
from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.federation.core.task import Task, of_clients
from pipelines.files import standard


@dataclass(frozen=True)
class Run:
    """method: `pppfl`, a baseline or a noisy algorithm. generator: whose sets it trains on; "" where on records."""

    dataset: str
    method: str
    generator: str = ""

    @property
    def names(self) -> dict[str, str]:
        return asdict(self)

    @property
    def noisy(self) -> bool:
        return not self.generator

    def settings(self, params: Params) -> Block:
        return params.training(self.dataset, methods.block(self.method))

    def task(self, params: Params, data: Mapping[str, Images | Sized]) -> Task:
        """Of `data`'s clients: all of them at the server, itself alone at a client."""
        purpose = "meta_train" if self.method == "pppfl" else self.method
        return of_clients(params, self.dataset, data, purpose, self.generator or None)

    def terms(self, params: Params) -> dict[str, str]:
        """{what both sides must have alike: a digest of it}. Public: no client's budget, place or record is in it."""
        profile = params.profiles[self.dataset].model_dump()
        alike = {
            "seed": params.seed,
            "settings": self.settings(params).model_dump(),
            "profile": {
                key: profile[key]
                for key in ("shape", "classes", "classifier", "augmentation", "images")
            },
        }
        return {name: _digest(value) for name, value in alike.items()}


def named(params: Params, names: dict) -> Run:
    """The run that a message names, where these parameters know it.

    Raises:
        UserError: they do not, or it would train on private records without privacy.
    """
    run = Run(*(str(names.get(field, "")) for field in ("dataset", "method", "generator")))
    noisy, synthetic = params.dp_baselines.algorithms, ["pppfl", *params.baselines.algorithms]
    known = {
        "data set": (run.dataset, params.datasets),
        "generator": (run.generator, params.synthesis.generators if run.generator else [""]),
        "method": (run.method, synthetic if run.generator else noisy),
    }
    for what, (value, allowed) in known.items():
        if value not in allowed:
            raise UserError(
                f"These parameters know no {what} {value!r} for a run that begins with {names!r}."
            )
    if not methods.has_rounds(run.method):
        raise UserError(
            f"{run.method!r} is no method that clients serve: it has no rounds, or reads private records."
        )
    return run


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(standard(value), sort_keys=True).encode()).hexdigest()[:16]
