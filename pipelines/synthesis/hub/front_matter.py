"""Writes the front matter of a card as the Hugging Face hub and `datasets` read it.

Every value in it is written as JSON, which YAML reads alike. So the name of a class stays what it
is, whether it reads `no`, `1.0` or `[a]: b`.
"""

import json
import re

from pipelines.datasets.labelled_images import Images
from pipelines.synthesis.hub import features, licences

# {the hub's word: below how many images it holds}
SIZES = {"n<1K": 1_000, "1K<n<10K": 10_000, "10K<n<100K": 100_000, "100K<n<1M": 1_000_000}
LARGEST = "1M<n<10M"


def text(description: dict, data: Images, names: list[str], size: int) -> str:
    """Returns the block between two lines of dashes.

    Args:
        description: The card, from `export.card`.
        data: The synthetic images.
        names: The classes' names, by label.
        size: The table's bytes.
    """
    lines = []
    for key, value in content(description, data, names, size).items():
        lines.append(f"{key}: {json.dumps(value, ensure_ascii=False)}\n")
    return f"---\n{''.join(lines)}---"


def content(description: dict, data: Images, names: list[str], size: int) -> dict:
    """Returns what the front matter says.

    Args:
        description: The card, from `export.card`.
        data: The synthetic images.
        names: The classes' names, by label.
        size: The table's bytes.
    """
    formal = description["privacy"]["guarantee"] == "formal"
    split = {"name": "train", "num_bytes": size, "num_examples": len(data)}
    return {
        "pretty_name": f"Synthetic images {description['name']}",
        **_licence(description["datasheet"]["source_licence"]),
        "task_categories": ["image-classification"],
        "annotations_creators": ["machine-generated"],
        "size_categories": [size_category(len(data))],
        "tags": ["synthetic", "differential-privacy" if formal else "NOT-private"],
        "dataset_info": {
            "features": features.in_card(list(data.images.shape[1:]), names),
            "splits": [split],
            "download_size": size,
            "dataset_size": size,
        },
        "configs": [
            {"config_name": "default", "data_files": [{"split": "train", "path": "data/train-*"}]}
        ],
    }


def size_category(count: int) -> str:
    """Returns the hub's word for a number of images.

    >>> size_category(999), size_category(1000), size_category(5_000_000)
    ('n<1K', '1K<n<10K', '1M<n<10M')
    """
    for word, bound in SIZES.items():
        if count < bound:
            return word
    return LARGEST


def _licence(words: str) -> dict:
    """Returns the hub's fields. A licence that it does not know has a name beside `other`."""
    identifier = licences.of(words).hub
    if identifier != "other":
        return {"license": identifier}
    name = re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")
    return {"license": "other", "license_name": name or "other"}
