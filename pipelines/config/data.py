"""Declares the settings about records.

They say where records come from, who holds them, and what is checked and promised.
"""

from collections.abc import Callable
from typing import Annotated, Literal

from annotated_types import Len
from pydantic import BeforeValidator, Field, model_serializer
from pydantic_core import PydanticCustomError

from pipelines.config.values import (
    Block,
    Delta,
    Epsilon,
    Fraction,
    Name,
    OpenFraction,
    Records,
    Side,
    Text,
    number,
)

# The most characters of a class's name.
MOST_CHARACTERS = 60


class Prepare(Block):
    """Says where raw files lie, and how a data set is split into parts."""

    root: Text = "raw"
    on_unreadable: Literal["fail", "skip"] = "fail"
    test_fraction: OpenFraction
    public_fraction: Fraction = 0.0


class SmallClient(Block):
    """Names a client that gets few records, and how many."""

    client: Name
    train_records: number(int, "[4, 1e9]")


def _site(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not (isinstance(value, str) and value.strip() and value.isprintable()):
        raise PydanticCustomError("rule", "must be {rule}", {"rule": "the name of a site"})
    return value


# What records name as their owner; a whole number is the text of its digits.
Site = Annotated[str, BeforeValidator(_site)]


class Partition(Block):
    """Says how the records of a data set are shared out to clients.

    Attributes:
        sites: {client: the sites whose records it holds}, for the scheme `natural`. None: each
            client holds the site of its own name.
        records_per_client: How many records a client gets on average, of all three parts together;
            None: all records are dealt.
    """

    scheme: Literal["dirichlet", "shards", "quantity", "iid", "natural"]
    clients: list[Name]
    sites: dict[Name, list[Site]] | None = None
    alpha: number(float, "[1e-6, 1e6]")
    shards_per_client: number(int, "[1, 1e4]")
    records_per_client: Records | None = None
    min_records: Records
    validation_fraction: OpenFraction
    test_fraction: OpenFraction
    small: SmallClient | None = None

    @model_serializer(mode="wrap")
    def _leave_out_absent_sites(self, handler: Callable[[Block], dict]) -> dict:
        # stored runs are found by this block, and those without sites have no such key
        content = handler(self)
        if self.sites is None:
            content.pop("sites", None)
        return content


class Privacy(Block):
    """Holds the delta of all clients, where noise comes from, and who is trusted.

    Attributes:
        trust: In a joint release. `t_of_k`: at most as many clients as `colluding` says put what
            they know together. `none`: each client adds enough noise for its epsilon alone.
    """

    delta: Delta
    noise: Literal["os_entropy", "seeded_for_tests"] = "os_entropy"
    trust: Literal["none", "t_of_k"] = "t_of_k"


class Client(Block):
    """Holds a client's budget for each release, and its cap for all of them together.

    Attributes:
        records: About how many records it trains on, as it wants everybody to know. None: it says
            nothing. It is never counted from its shard, whose size is private.
    """

    epsilon: Epsilon
    delta: Delta | None = None
    lifetime_epsilon: Epsilon | None = None
    lifetime_delta: Delta | None = None
    records: Records | None = None

    @model_serializer(mode="wrap")
    def _leave_out_absent_records(self, handler: Callable[[Block], dict]) -> dict:
        # stored runs are found by this block, and those that declare none have no such key
        content = handler(self)
        if self.records is None:
            content.pop("records", None)
        return content


class Quality(Block):
    """Says what synthetic images must reach, and how that is measured."""

    extractor: Literal["small_gray", "encoder", "inception"]
    inception_weights: Text | None = None
    repeats: number(int, "[1, 1e4]")
    min_tstr_accuracy: Fraction
    min_recall: Fraction
    on_failure: Literal["warn", "fail"] = "warn"


# Radians, pixels or grey levels.
Warp = number(float, "[0, 1e3]")


class Augmentation(Block):
    """Holds the strength of each random change to an image; 0 leaves the change out."""

    rotation: Warp = 0.0
    scale: Fraction = 0.0
    shear: Warp = 0.0
    shift: Warp = 0.0
    elastic: Warp = 0.0
    noise: Warp = 0.0


# Networks whose features are fixed, so that one linear layer is trained.
ON_FIXED_FEATURES = ("scatter", "encoder")
Network = Literal["mlp", "cnn", "resnet", "papernot", "fedavg_cnn", "abadi", "scatter", "encoder"]
# {network: the least side of an image}, for the networks that have one.
SMALLEST = {"cnn": 16, "papernot": 16, "fedavg_cnn": 16, "abadi": 4, "scatter": 8}
# {network: the largest side of an image}: the basis of larger ones takes gigabytes of memory.
LARGEST = {"scatter": 64}
# {network: the most channels of an image}, for the same reason.
MOST_CHANNELS = {"scatter": 4}


def lacks_features(shape: list[int], network: str) -> str:
    """Returns what images must have for fixed features, "" where they have it.

    Args:
        shape: [height, width, channels] of an image.
        network: `scatter` or `encoder`.

    >>> lacks_features([28, 28, 1], "scatter"), lacks_features([90, 90, 2], "encoder")
    ('', '1 or 3 channels')
    """
    *sides, channels = shape
    if network == "encoder":
        return "" if channels in (1, 3) else "1 or 3 channels"
    fits = min(sides) >= SMALLEST["scatter"] and max(sides) <= LARGEST["scatter"]
    if fits and channels <= MOST_CHANNELS["scatter"]:
        return ""
    return (
        f"{SMALLEST['scatter']} to {LARGEST['scatter']} pixels a side and "
        f"{MOST_CHANNELS['scatter']} channels at most"
    )


# The sources of a user's own images. Every other source has a published data set, whose records are
# no secret.
OWN_SOURCES = ("folder", "site_folder", "npz")


def _class_names(value):
    texts = isinstance(value, list) and all(isinstance(name, str) for name in value)
    fine = texts and all(
        name.strip() and name.isprintable() and len(name) <= MOST_CHARACTERS for name in value
    )
    if value is not None and not (fine and len(set(value)) == len(value)):
        rule = (
            f"null or a list of texts, none twice, each of 1 to {MOST_CHARACTERS} printable "
            "characters"
        )
        raise PydanticCustomError("rule", "must be {rule}", {"rule": rule})
    return value


ClassNames = Annotated[list[str] | None, BeforeValidator(_class_names)]


def channels_first(shape: tuple[int, ...] | list[int]) -> bool:
    """Returns whether `shape` of one image, meant as [H, W, C], can only be [C, H, W]."""
    return shape[0] in (1, 3, 4) and shape[2] > 4


# The encoder whose weights are in a package, which the extra [encoder] installs.
WITH_WEIGHTS = "efficientnet_lite0"


class Encoder(Block):
    """Names a frozen network with public weights, on whose features a linear layer is trained.

    Attributes:
        network: `efficientnet_lite0` has its weights with it. The others are torchvision's.
        weights: The path of a file of weights; None: those that came with the network. Nothing is
            downloaded.
        side: Pixels to which both sides of an image are brought.
    """

    network: Literal[
        "efficientnet_lite0",
        "resnet18",
        "resnet50",
        "densenet121",
        "efficientnet_b0",
        "convnext_tiny",
    ]
    weights: Text | None = None
    side: number(int, "[32, 512]")


class Profile(Block):
    """Holds what is public about a data set, and the settings that only its runs have.

    Attributes:
        source: A name that `pipelines.datasets.sources` knows.
        records: About how many records there are to deal to the clients, where that is public. Of
            a published data set everybody knows it. None: it is nobody's business.
        public_fraction: The share of images that is declared public. None stands for
            `prepare.public_fraction` if the source is public, and for 0 if the images are a user's.
        encoder: What the network `encoder` computes its features with, or None.
        training: {name of a method, or of a family: the settings that it overrides}.
        synthesis: {name of a generator: the settings that it overrides}.
    """

    source: Name
    shape: Annotated[list[Side], Len(3, 3)]
    classes: number(int, "[2, 1e5]")
    class_names: ClassNames = None
    licence: Text
    classifier: Network
    encoder: Encoder | None = None
    augmentation: Augmentation | None = None
    images: number(int, "[4, 1e6]")
    records: Records | None = None
    public_fraction: Fraction | None = None
    training: dict[Name, dict] = Field(default_factory=dict)
    synthesis: dict[Name, dict] = Field(default_factory=dict)

    @property
    def is_public(self) -> bool:
        """Returns whether the source is a published data set."""
        return self.source not in OWN_SOURCES
