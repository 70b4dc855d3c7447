"""What one federated run is, by name.

Both sides of a network derive all else of a run from its name, each by its own parameters.
"""

import hashlib
import json
from collections.abc import Mapping, Sized
from dataclasses import asdict, dataclass, replace

from pipelines import methods
from pipelines.config import Params
from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError
from pipelines.federation.core.task import Task, of_clients
from pipelines.files import standard
from pipelines.training import fixed_features


@dataclass(frozen=True)
class RunSpec:
    """Names a run.

    Attributes:
        dataset: its name.
        method: `pppfl`, a baseline or a noisy method.
        generator: whose sets the run trains on; "" if it trains on private records.
    """

    dataset: str
    method: str
    generator: str = ""

    @property
    def names(self) -> dict[str, str]:
        """Returns the fields as a message has them."""
        return asdict(self)

    @property
    def noisy(self) -> bool:
        """Returns whether the run trains on private records, with noise."""
        return not self.generator

    def gathers_pool(self, params: Params) -> bool:
        """Returns whether the settings have a network's server gather the sets, for fine-tuning."""
        return params.federation.gather_sets and not self.noisy

    def settings(self, params: Params) -> Block:
        """Returns the method's settings on this data set."""
        return params.training(self.dataset, methods.block(self.method))

    def task(
        self,
        params: Params,
        data: Mapping[str, Images | Sized],
        shared: Mapping[str, Images] | None = None,
    ) -> Task:
        """Returns the task of a run on synthetic sets.

        Args:
            params: of this side.
            data: each client's set or its size: of all clients at the server, of one at a client.
            shared: the sets that every client holds, where the algorithm shares them.
        """
        purpose = "meta_train" if self.method == "pppfl" else self.method
        task = of_clients(params, self.dataset, data, purpose, self.generator or None)
        return replace(task, shared=shared)

    def terms(self, params: Params) -> dict[str, str]:
        """Returns {what both sides must have alike: a digest of it}.

        It is public: no client's budget, place or record is in it.
        """
        profile = params.profiles[self.dataset].model_dump()
        alike = {
            "seed": params.seed,
            "settings": self.settings(params).model_dump(),
            "gather_sets": self.gathers_pool(params),
            "profile": {
                key: profile[key]
                for key in ("shape", "classes", "classifier", "augmentation", "images")
            },
        }
        network = getattr(self.settings(params), "network", None) or profile["classifier"]
        fixed = fixed_features.of(params.profiles[self.dataset], network)
        if fixed:
            alike["features"] = fixed.facts
        return digests(alike)


def named(params: Params, names: dict) -> RunSpec:
    """Returns the run that a message names.

    Raises:
        UserError: these parameters know no such run, or it would train on private records without
            privacy.
    """
    run = RunSpec(*(str(names.get(field, "")) for field in ("dataset", "method", "generator")))
    noisy = params.dp_baselines.algorithms
    synthetic = ["pppfl", *params.baselines.algorithms]
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
    if not methods.exchanges_messages(run.method):
        raise UserError(
            f"{run.method!r} is no method that clients serve: it has no rounds, or reads private records."
        )
    return run


def digests(alike: Mapping[str, object]) -> dict[str, str]:
    """Returns a short digest of each thing that two sides must have alike, by its name."""
    found = {}
    for name, value in alike.items():
        text = json.dumps(standard(value), sort_keys=True)
        found[name] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return found
