"""The card of an export: what it is, what it cost, what it is for. Nothing in it needs private data beyond the release.

card.json is for programs; card.md carries the same with the front matter that dataset hubs read.
"""

import json

import numpy as np

from pipelines.config.data import Profile
from pipelines.datasets.labelled_images import Images
from pipelines.synthesis import base

SCHEMA = 1


def public_metrics(data: Images, classes: int) -> dict:
    """Checks that look at the synthetic images alone."""
    flat = data.images.reshape(len(data), -1)
    per_class = np.bincount(data.labels, minlength=classes)
    means = data.pixels.reshape(len(data), -1).mean(1)
    distinct = len(np.unique(flat, axis=0))
    return {
        "images": len(data),
        "images_per_class": per_class.tolist(),
        "duplicate_rate": 1 - distinct / len(data),
        "pixel_mean": float(means.mean()),
        "pixel_deviation_within_class": float(
            np.mean([flat[data.labels == k].std(0).mean() / 255 for k in np.flatnonzero(per_class)])
        ),
    }


def card(
    *, dataset: str, client: str, generator: str, release: dict, data: Images, profile: Profile
) -> dict:
    weak = list(release["weak"])
    return {
        "schema": SCHEMA,
        "name": f"{dataset}/{client}/{generator}",
        "release": release["name"],
        "privacy": release["privacy"],
        "weak": weak,
        "datasheet": {
            "intended_use": "training and pre-training of image classifiers, federated or not",
            "out_of_scope": "inference about single records, estimates of how common a class is at the client",
            "resolution": list(data.images.shape[1:]),
            "generator": generator,
            "known_failures": base.load(generator).KNOWN_FAILURES,
            "source_licence": profile.licence,
            **({"class_names": profile.class_names} if profile.class_names else {}),
            "training_augmentation": profile.augmentation.model_dump()
            if profile.augmentation
            else None,
            "number_of_images": "a public parameter, independent of the number of records",
            "label_histogram": release["privacy"]["details"].get("labels"),
        },
        "public_metrics": public_metrics(data, profile.classes),
    }


def markdown(card: dict) -> str:
    """card.md: front matter, the privacy block first, then the datasheet."""
    privacy, sheet = card["privacy"], card["datasheet"]
    tags = (
        "synthetic, differential-privacy"
        if privacy["guarantee"] == "formal"
        else "synthetic, NOT-private"
    )
    warnings = [f"> **Weak:** {reason}" for reason in card["weak"]]
    rows = {
        "release, as the client's ledger knows it": card["release"],
        "guarantee": privacy["guarantee"],
        "epsilon": privacy["epsilon"],
        "delta": privacy["delta"],
        "mu (Gaussian DP)": privacy["mu"],
        "unit": privacy["unit"],
        "neighbouring relation": privacy["relation"],
        "sampling": privacy["sampling"],
        "accountant": privacy["accountant"],
        "mechanism": privacy["mechanism"],
        "noise": privacy["noise"],
        "not covered": "; ".join(privacy["not_covered"]),
    }
    details = {f"`{name}`": value for name, value in privacy["details"].items()}
    parts = [
        # quoted as JSON, which is YAML: a licence is the user's own words
        f"---\nlicense: other\nlicense_name: {json.dumps(sheet['source_licence'], ensure_ascii=False)}\n"
        "task_categories: [image-classification]\n"
        f"annotations_creators: [machine-generated]\ntags: [{tags}]\n---",
        f"# Synthetic images {card['name']}",
        privacy["statement"],
        *warnings,
        "## Privacy",
        _table(rows),
        "### Parameters of the mechanism",
        _table(details),
        "## Datasheet",
        _table(sheet | _named(sheet)),
        "## Metrics that need no private data",
        _table(card["public_metrics"]),
    ]
    return "\n\n".join(parts) + "\n"


def _named(sheet: dict) -> dict:
    """Returns the classes' names by label, where the profile declares them."""
    names = "; ".join(f"{label}: {name}" for label, name in enumerate(sheet.get("class_names", ())))
    return {"class_names": names} if names else {}


def _table(rows: dict) -> str:
    lines = ["| | |", "|---|---|"]
    for name, value in rows.items():
        # a bar would end the cell
        shown = str(value).replace("|", "\\|")
        lines.append(f"| {name.replace('_', ' ')} | {shown} |")
    return "\n".join(lines)
