"""Makes cards and exported folders for tests, as the stage writes them."""

from pathlib import Path

import numpy as np

from pipelines import config
from pipelines.datasets.labelled_images import Images, synthetic
from pipelines.privacy import noise
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.synthesis import dp_moments, export, gan
from pipelines.synthesis import release as releasing
from pipelines.synthesis.base import Space, Weights

PARAMS = config.load()
PROFILE = PARAMS.profiles["digits"]
SPACE = Space(8, 8, 1, 10)


def images(count: int = 40, channels: int = 1) -> Images:
    """Returns random images of four classes."""
    rng = np.random.default_rng(0)
    return synthetic(rng.random((count, 8, 8, channels)), np.arange(count) % 4)


def formal(epsilon: float = 10.0) -> dict:
    """Returns a release with a guarantee."""
    return _release(dp_moments, "os_entropy", epsilon)


def with_test_noise() -> dict:
    """Returns a release whose noise follows from the seed."""
    return _release(dp_moments, "seeded_for_tests")


def without_privacy() -> dict:
    """Returns a release at epsilon infinite."""
    return _release(gan, "os_entropy")


def _release(generator, source: str, epsilon: float = 10.0) -> dict:
    settings = PARAMS.generator("digits", generator.__name__.rpartition(".")[2])
    plan = generator.plan(settings, Budget(epsilon, 1e-5), SPACE)
    statement = releasing.described(plan, noise.source(source, test_seed=0))
    return {"privacy": statement.as_dict(), "weak": [], "name": "f00d"}


def card(
    data: Images, release: dict | None = None, classifier: Weights | None = None, **facts
) -> dict:
    """Returns the card of a set of digits, or of a data set that differs in some facts.

    Args:
        data: The images.
        release: The release, or None for one with a guarantee.
        classifier: The classifier that was released with the images, or None.
        **facts: Fields of the profile that differ.
    """
    return export.card(
        dataset="digits",
        client="c0",
        generator="dp_moments",
        release=release or formal(),
        data=data,
        profile=PROFILE.model_copy(update=facts),
        classifier=classifier,
    )


def written(folder: Path, data: Images, **facts) -> Path:
    """Writes an export into a new folder, and returns it."""
    folder.mkdir(parents=True)
    export.write(folder, data, card(data, **facts))
    return folder
