"""Proposes a profile and a partition for a user's own images.

The profile is public, so that nothing in it may follow from a count of records. The number of
classes and the shape are declared, and the number of synthetic images is a constant.
"""

import contextlib
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from ruamel.yaml import YAML

from pipelines.config.data import SMALLEST, Partition
from pipelines.datasets import partitions
from pipelines.datasets.inspection import Findings
from pipelines.datasets.labelled_images import Images
from pipelines.errors import UserError

# sides that generators were tuned at
GREY_SIDE = 28
COLOUR_SIDE = 32
# synthetic images per client
IMAGES = 1000
# of datalens, where no number of records is public
TEACHERS = 1000
# clients of a simulation, at most
CLIENTS = 5
# clients that sites are put together to, at most
SITE_CLIENTS = 10
# `min_records` under label skew, the roomier one first
LEAST_RECORDS = (40, 20)
# draws under each of which a proposal must hold, for the pipeline's own follows from `seed`
DRAWS = 20


@dataclass(frozen=True)
class Proposal:
    """Holds what is proposed.

    Attributes:
        profile: The content of profiles/NAME.yaml.
        partition: Those settings of `partition` that replace the shipped ones; None where no number
            of clients works.
    """

    profile: dict
    partition: dict | None


def propose(findings: Findings, shipped: Partition, test_fraction: float) -> Proposal:
    """Returns a proposal for what was found.

    Args:
        findings: What was found.
        shipped: The settings of `partition`, whose fractions stay.
        test_fraction: The share of the images that the global test set gets.
    """
    return Proposal(_profile(findings), _partition(findings, shipped, test_fraction))


def shape_of(findings: Findings) -> list[int]:
    """Returns the shape [height, width, channels] that images are brought to.

    An .npz has its own. Images that all have one size of at most COLOUR_SIDE keep it.
    """
    same = (findings.sides == findings.sides[0]).all()
    if findings.source == "npz" or (same and findings.sides.max() <= COLOUR_SIDE):
        return [*findings.sides[0].tolist(), findings.channels]
    side = GREY_SIDE if findings.channels == 1 else COLOUR_SIDE
    return [side, side, findings.channels]


def _profile(findings: Findings) -> dict:
    shape = shape_of(findings)
    small = min(shape[:2]) < SMALLEST["cnn"]
    # a record's largest norm, once mid-grey is subtracted, is half the root of its numbers
    clip = round(math.sqrt(math.prod(shape)) / 4, 1)
    return {
        "source": findings.source,
        "shape": shape,
        "classes": findings.classes,
        "class_names": None,
        "licence": "yours",
        "classifier": "mlp" if small else "cnn",
        "encoder": None,
        "augmentation": None,
        "images": IMAGES,
        "records": None,
        "public_fraction": 0.0,
        "training": {},
        "synthesis": {
            "datalens": {"teachers": TEACHERS, "weak_plan": "warn"},
            "dp_moments": {
                "centre": 0.5,
                "cutoff": min(8, *shape[:2]),
                "clip": clip,
                "residual_clip": round(clip * 10 / 14, 1),
                "low_epsilon": None,
            },
            "joint_moments": {"base": "dp_moments"},
            "dp_head": {"base": "dp_moments"},
            "joint_head": {"base": "dp_head"},
            "joint_datalens": {"base": "datalens"},
            "dp_merf": {"length_scale": round(math.prod(shape) / 7.5, 1)},
            "dp_teacher": {"base": "dp_moments", "classifier": "mlp" if small else "cnn"},
        },
    }


def as_yaml(name: str, profile: dict) -> str:
    """Returns the text of a profile's file."""
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 120
    stream = io.StringIO()
    yaml.dump(profile, stream)
    return (
        f"# {name}: written by `python -m pipelines.datasets add`. What each line means:\n"
        "# profiles/digits.yaml. Everything here is public: name the classes in class_names only\n"
        "# if those who get the images may know the names.\n" + stream.getvalue()
    )


def _partition(findings: Findings, shipped: Partition, test_fraction: float) -> dict | None:
    """Returns the first partition under which every client has enough records."""
    for candidate in _candidates(findings):
        settings = Partition.model_validate({**shipped.model_dump(), **candidate})
        with contextlib.suppress(UserError):
            _try(findings, settings, test_fraction)
            return candidate
    return None


def _candidates(findings: Findings) -> Iterator[dict]:
    """Yields settings of `partition`, the one with most clients first."""
    if findings.sites is not None:
        sites = list(findings.by_site)
        if len(sites) <= SITE_CLIENTS:
            yield _natural([[site] for site in sites])
        for count in (CLIENTS, 3, 2):
            yield _natural([sites[first::count] for first in range(count)])
        return
    for count in range(CLIENTS, 1, -1):
        clients = [f"c{number}" for number in range(count)]
        usual = {"clients": clients, "sites": None, "small": None}
        for least in LEAST_RECORDS:
            yield {"scheme": "dirichlet", "min_records": least, **usual}
        yield {"scheme": "iid", **usual}


def _natural(groups: list[list[str]]) -> dict:
    sites = {f"c{number}": group for number, group in enumerate(groups) if group}
    return {"scheme": "natural", "clients": list(sites), "sites": sites, "small": None}


def _try(findings: Findings, settings: Partition, test_fraction: float) -> None:
    """Deals the records as the pipeline will, once for each of DRAWS streams.

    Raises:
        UserError: A client would get too few.
    """
    count = len(findings.labels)
    records = Images(
        np.empty((count, 0, 0, 1), np.uint8), findings.labels, np.arange(count), findings.sites
    )
    for stream in range(DRAWS):
        rng = np.random.default_rng(stream)
        dealt = records
        if not findings.official_test:
            _, rest = partitions.split(findings.labels, [test_fraction], rng)
            dealt = records[rest]
        partitions.cut(dealt, settings, rng)
