"""Declares the settings of classifiers: PPPFL, the methods beside it, and fine-tuning.

A new algorithm is a class here, unless it has another's settings, and its line in `Baselines`.
`OneModel` names it, too, if it leaves one model for all.
"""

from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from pipelines.config.values import (
    Block,
    Count,
    Fraction,
    Name,
    Natural,
    NonNegative,
    OpenFraction,
    Rate,
    Share,
    number,
)

# The methods that leave one model for all clients, trained on synthetic sets.
OneModel = Literal[
    "pppfl",
    "random_init",
    "pooled",
    "fedavg",
    "fedprox",
    "fednova",
    "scaffold",
    "reptile",
    "sda_fl",
    "fedmeta",
    "pppfl_paper",
]


class Pooled(Block):
    """Holds the settings of training one model on synthetic sets that lie at one place.

    steps: Of Adam; about, where epochs are whole. learning_rate: The peak of a rise and fall over them.

    Attributes:
        rounds: Of messages.
    """

    rounds: ClassVar[int] = 0

    steps: Count
    batch: Count
    learning_rate: Rate

    def epochs(self, images: int) -> int:
        """Returns how many whole passes over so many images come nearest to the steps.

        >>> Pooled(steps=700, batch=64, learning_rate=0.006).epochs(10_000)
        4
        """
        return max(1, round(self.steps * self.batch / images))


class FewLabels(Block):
    """Holds the meta-learning tasks that look like a client with few labels.

    least, most: The images of a support set, drawn evenly on a logarithmic scale. concentration: Of
    the Dirichlet distribution of a task's class shares; smaller is more skew.
    """

    least: Count
    most: Count
    concentration: Rate

    @model_validator(mode="after")
    def _rise(self) -> Self:
        if self.least > self.most:
            values = {"rule": f"at least `least`, {self.least}"}
            raise PydanticCustomError("rule", "'most' must be {rule}", values)
        return self


class Meta(Block):
    """Holds the settings of a method of MAML.

    where: `server` runs all rounds where the exported sets are gathered; at `clients` each holds its
    own set, and the server averages their gradients. warm_start: How the first weights are trained on
    all exported sets; None begins from random weights. few_labels: What the tasks are; None draws
    batches of all classes. handed_out_weight: The weight of the loss before any inner step, of the
    model as it is handed out. pool_per_class: How many released images of a class go out with the
    model; None: all.

    Attributes:
        family: The name under which a profile overrides all such blocks at once.
        own: The settings that such an override skips, because they define the algorithm.
    """

    family: ClassVar[str] = "meta"
    own: ClassVar[frozenset[str]] = frozenset()

    rounds: Count
    order: Literal["first", "second"]
    inner_learning_rate: Rate
    inner_steps: Count
    outer_learning_rate: Rate
    outer_optimiser: Literal["adam", "sgd"]
    query_fraction: OpenFraction
    batch: Count
    weights: Literal["uniform", "size_of_set", "epsilon"]
    rho: number(float, "[1e-3, 1e6]")
    ema: bool = False
    zeta: Share = 1.0
    cosine: bool = False
    cycles: Count = 1
    where: Literal["server", "clients"] = "clients"
    warm_start: Pooled | None = None
    few_labels: FewLabels | None = None
    handed_out_weight: NonNegative = 0.0
    pool_per_class: Count | None = None


class Fedmeta(Meta):
    """Holds the settings of plain MAML: with any of the additions it would be PPPFL."""

    own = frozenset(
        {
            "weights",
            "ema",
            "cosine",
            "where",
            "warm_start",
            "few_labels",
            "handed_out_weight",
        }
    )

    ema: Literal[False] = False
    cosine: Literal[False] = False
    where: Literal["clients"] = "clients"
    warm_start: None = None
    few_labels: None = None
    handed_out_weight: number(float, "[0, 0]") = 0.0


class PppflPaper(Meta):
    """Holds the paper's setting. Only its rounds follow the others'."""

    own = frozenset(Meta.model_fields) - {"rounds"}


class ReplaySchedule(Block):
    """Holds how a client with at least `from_labels` labelled records trains, and fewer than the next.

    steps: Of Adam; 0 trains nothing. cosine: The learning rate falls to 0 along a cosine, instead of
    being constant. synthetic_share: Lambda, the weight of the loss on released images.
    synthetic_batch: Released images per step. mean_with_local: On the client's own images, the model
    answers with the mean of its own and of another's probabilities, which is trained alone for the
    same number of steps. kept: The part of the handed-out weights that training starts from, where
    there are released images; the rest are a fresh network's.
    """

    from_labels: Natural
    steps: Natural
    learning_rate: Rate
    cosine: bool = False
    synthetic_share: Fraction = 0.0
    synthetic_batch: Count = 64
    mean_with_local: bool = False
    kept: number(float, "[0, 1]") = 1.0


class Replay(Block):
    """Holds the recipe that trains on private and on released images in every step.

    schedules: By the number of labels, rising; the first begins at 0. proximal: The weight of half
    the squared distance to the weights handed out, where a method has no released images.
    """

    batch: Count = 64
    proximal: NonNegative = 0.0
    schedules: list[ReplaySchedule]

    @field_validator("schedules")
    @classmethod
    def _rise(cls, schedules: list[ReplaySchedule]) -> list[ReplaySchedule]:
        starts = [schedule.from_labels for schedule in schedules]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            rule = "a list that begins with from_labels 0, and whose from_labels rise"
            raise PydanticCustomError("rule", "must be {rule}", {"rule": rule})
        return schedules


class FineTune(Block):
    """Holds what every client does with the model that it is handed.

    recipe: `plain` trains on private images until the validation loss stops falling. `replay` trains
    by the schedules of `replay`, and `alone` by the same on private images alone. every,
    shared_every: Which rounds the curve has; None: the last.
    """

    recipe: Literal["plain", "replay", "alone"] = "plain"
    epochs: Count
    batch: Count
    learning_rate: Rate
    patience: Count
    every: Count | None = None
    shared_every: Count | None = None
    replay: Replay = Replay(schedules=[ReplaySchedule(from_labels=0, steps=0, learning_rate=1e-3)])


class Nothing(Block):
    """Holds nothing: the method has no settings of its own."""


class Local(Block):
    """Holds the settings of training on one client's private images alone."""

    epochs: Count
    patience: Count


class LocalSgd(Block):
    """Holds the settings of rounds of local SGD, which most algorithms share.

    Attributes:
        family: As of `Meta`.
        own: As of `Meta`.
    """

    family: ClassVar[str] = "federated"
    own: ClassVar[frozenset[str]] = frozenset()

    rounds: Count
    local_epochs: Count
    batch: Count
    learning_rate: Rate
    momentum: Fraction = 0.0


class Fedprox(LocalSgd):
    """Holds the settings of FedProx; `mu` weighs the distance to the global model."""

    mu: NonNegative


class Scaffold(LocalSgd):
    """Holds the settings of SCAFFOLD."""

    # the control variates are means of gradients under plain SGD alone
    momentum: number(float, "[0, 0]") = 0.0


class Reptile(LocalSgd):
    """Holds the settings of Reptile."""

    outer_learning_rate: Share


class SdaFl(LocalSgd):
    """Holds the settings of SDA-FL, with the least confidence of a pseudo-label."""

    confidence: Fraction


class Baselines(Block):
    """Holds the blocks of all methods beside PPPFL that train without noise.

    Attributes:
        algorithms: The names of those that run.
    """

    algorithms: list[Name]
    local: Local
    random_init: Nothing = Nothing()
    single: Pooled
    pooled: Pooled
    fedavg: LocalSgd
    fedprox: Fedprox
    fednova: LocalSgd
    scaffold: Scaffold
    reptile: Reptile
    sda_fl: SdaFl
    fedmeta: Fedmeta
    pppfl_paper: PppflPaper
    fedavg_real: LocalSgd
    pppfl_real: Meta


BASELINES = {
    name: field.annotation for name, field in Baselines.model_fields.items() if name != "algorithms"
}


class NewClients(Block):
    """Holds the settings of new clients.

    Attributes:
        held_out: The clients that take no part in training.
        labels: The numbers of labelled records that a new client may have.
        algorithms: Methods that leave one model for all, trained on synthetic sets.
        recipe: `plain` takes `steps` full-batch steps of Adam; `replay` follows `fine_tune.replay`.
    """

    recipe: Literal["plain", "replay"] = "plain"
    held_out: list[Name] = Field(default_factory=list)
    labels: list[Count]
    draws: Count
    steps: Count
    learning_rate: Rate
    algorithms: list[OneModel]
