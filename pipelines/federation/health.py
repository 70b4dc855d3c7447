"""Finds a shared model that collapsed, by its weights and by synthetic or public images alone: for free.

A shared model is made to be adapted by each client, and MAML's may rightly be poor before that. So it
takes a hundred steps and is then tested, and so does the untrained network that the training began
from. The images are of all clients' sets together, equally many of each class: a model that sees no
difference between images can do no better there than guess. Per client it would not show: a set of a
single class is all right for a model that knows nothing else.

A model has collapsed where it cannot be told from guessing, and an untrained network can. Where that
cannot be told from guessing either, the images teach nothing in so few steps, and nothing is said. The
rule and the number of steps were chosen on synthetic sets of MNIST digits and of made-up photographs:
fewer steps called models dead that recover.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import numpy as np
from torch import nn

from pipelines import seeds
from pipelines.config.training import Meta
from pipelines.config.values import Block
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.evaluation.scoring import predictions
from pipelines.training import classifier
from pipelines.training.tensors import State, with_state

FILE = "health.json"
FEWEST = 4  # images of a class, at least
IN_ALL = 800  # images of all classes, at most
TO_ADAPT = 40  # images of a class, at most
TO_TEST = 100  # images of a class, at most
# of Adam: what a client with a hundred records takes in fine-tuning
STEPS = 100
BATCH = 32
LEARNING_RATE = 1e-3
ERRORS = 3.0  # standard errors of guessing, within which an accuracy is not told from it


@dataclass(frozen=True)
class Health:
    """Holds a verdict.

    Attributes:
        collapsed: whether the model is of no use.
        why: a sentence, empty where nothing was found.
        accuracy, untrained, guessing: after the steps, of the model, of the untrained network, and of
            a guess. None where no image was looked at.
    """

    collapsed: bool
    why: str = ""
    accuracy: float | None = None
    untrained: float | None = None
    guessing: float | None = None

    def as_dict(self) -> dict:
        """Returns the fields, for a JSON file."""
        return asdict(self)

    def told(self, method: str) -> str:
        """Returns a line for the terminal that ends in a line break, or nothing."""
        return f"COLLAPSED: {method}: {self.why}\n" if self.collapsed else ""


def check(
    model: State,
    start: State,
    sets: Iterable[Images],
    *,
    build: Callable[[], nn.Module],
    seed: int,
    remedy: str,
    losses: Iterable[float] = (),
) -> Health:
    """Returns the verdict on a shared model.

    Args:
        model, start: its weights, and those before any training.
        sets: synthetic or public images. Without any, the weights alone are looked at.
        build: makes a fresh network of the same kind.
        seed: of the draw of images and of the batches.
        remedy: a sentence on what to do, which ends the reason.
        losses: of the last round.
    """
    broken = [name for name, array in model.items() if not np.isfinite(array).all()]
    if broken:
        return Health(True, f"The weights {broken[0]!r} are not finite. {remedy}")
    if not all(map(math.isfinite, losses)):
        return Health(True, f"The last round's loss is not finite. {remedy}")
    support, query = _balanced(list(sets), seed)
    classes = len(np.unique(query.labels)) if query else 0
    if classes < 2:
        return Health(False)
    predicted = _adapted(with_state(build(), model), support, query, seed)
    untrained = _adapted(with_state(build(), start), support, query, seed)
    figures = {
        "accuracy": float(np.mean(predicted == query.labels)),
        "untrained": float(np.mean(untrained == query.labels)),
        "guessing": 1 / classes,
    }
    if not _lost(len(query), **figures):
        return Health(False, **figures)
    return Health(True, f"{_reason(predicted, **figures)} {remedy}", **figures)


def remedy(dataset: str, block: str, settings: Block) -> str:
    """Returns a sentence on what to do about a collapse.

    Args:
        dataset: its name.
        block: where params.yaml has the method's settings.
        settings: the method's own.
    """
    rate = "outer_learning_rate" if isinstance(settings, Meta) else "learning_rate"
    if not hasattr(settings, rate):
        return "Fine-tuning does not mend that."
    return (
        f"Fine-tuning does not mend that. Lower {rate} of {block} (profiles.{dataset}.training), now "
        f"{getattr(settings, rate):g}."
    )


def _lost(count: int, *, accuracy: float, untrained: float, guessing: float) -> bool:
    """Returns whether `accuracy`, on `count` images, cannot be told from guessing, and `untrained` can."""
    least = guessing + ERRORS * math.sqrt(guessing * (1 - guessing) / count)
    return accuracy <= least < untrained


def _reason(predicted: np.ndarray, *, accuracy: float, untrained: float, guessing: float) -> str:
    beside = f"where an untrained network reaches {untrained:.3f} and guessing {guessing:.3f}"
    if len(np.unique(predicted)) == 1:
        return f"After a hundred steps it takes every image for class {predicted[0]}, {beside}."
    return f"Its accuracy after a hundred steps is {accuracy:.3f}, {beside}."


def _balanced(sets: list[Images], seed: int) -> tuple[Images | None, Images | None]:
    """Returns images to adapt on and images to test on.

    They are equally many of each class that is not too rare, from all sets.
    """
    if not sets:
        return None, None
    data = concatenate(sets)
    rng = np.random.default_rng(seeds.derive(seed, "health"))
    all_labels, all_counts = np.unique(data.labels, return_counts=True)
    labels = all_labels[all_counts >= FEWEST]
    counts = all_counts[all_counts >= FEWEST]
    if not len(labels):
        return None, None
    each = max(FEWEST, min(IN_ALL // len(labels), counts.min()))
    cut = min(TO_ADAPT, each // 2)
    end = min(cut + TO_TEST, each)
    drawn = [rng.permutation(np.flatnonzero(data.labels == label)) for label in labels]
    support = np.concatenate([rows[:cut] for rows in drawn])
    query = np.concatenate([rows[cut:end] for rows in drawn])
    return data[support], data[query]


def _adapted(network: nn.Module, support: Images, query: Images, seed: int) -> np.ndarray:
    """Returns the classes of the query images, int64 [n], after STEPS steps on the support images."""
    epochs = math.ceil(STEPS / math.ceil(len(support) / BATCH))
    classifier.fit(
        network, support, epochs=epochs, batch=BATCH, learning_rate=LEARNING_RATE, seed=seed
    )
    return predictions(network, query)
