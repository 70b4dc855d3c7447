"""Writes an export folder and its card. The folder is the only thing that leaves a client.

It holds images.npz, grid.png, card.json, card.md, SHA256SUMS, and the same once more in a folder
that other tools read (hub). Where the generator released a classifier beside its images, the folder
also holds classifier.safetensors (`released_classifier` reads it). The card says what the images
are, what they cost and what they are for. Nothing in it needs private data beyond the release.
card.json is for programs, card.md for people.
"""

import math
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from pipelines.config.data import Profile
from pipelines.datasets.labelled_images import Images
from pipelines.files import sha256, write_arrays, write_json
from pipelines.paths import CLASSIFIER
from pipelines.synthesis import base, card_text, hub
from pipelines.synthesis.base import Weights

SCHEMA = 1
COLUMNS = 10
# pixels left of the grid, for the labels
MARGIN = 24
TILE = 40
# of a class's name in the picture
MOST_LETTERS = 24


def write(folder: Path, data: Images, description: dict, classifier: Weights | None = None) -> None:
    """Writes the files of an export into a folder.

    Args:
        folder: An empty folder.
        data: The synthetic images.
        description: Their card, from `card`, which knows of the same classifier.
        classifier: The classifier that was released with them, or None.
    """
    names = description["datasheet"].get("class_names")
    classes = len(description["public_metrics"]["images_per_class"])
    data.save(folder / "images.npz", class_names=names)
    grid(data, classes=classes, names=names).save(folder / "grid.png")
    write_json(folder / "card.json", description)
    (folder / "card.md").write_text(card_text.markdown(description))
    hub.write(folder / hub.FOLDER, data, description)
    if classifier:
        write_arrays(folder / CLASSIFIER, classifier.arrays)
    lines = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        lines.append(f"{sha256(path)}  {path.relative_to(folder).as_posix()}\n")
    (folder / "SHA256SUMS").write_text("".join(lines))


def card(
    *,
    dataset: str,
    client: str,
    generator: str,
    release: dict,
    data: Images,
    profile: Profile,
    classifier: Weights | None = None,
) -> dict:
    """Returns the card of an export, ready for JSON.

    Args:
        dataset: The data set's name.
        client: The client's name.
        generator: The generator's name.
        release: `name` (the release's public name), `weak` (reasons why it can only be noise),
            `privacy` (the statement, as the ledger holds it) and, where several clients made it,
            `together` (by client, the public name in its own ledger). `sealed` is what they have
            signed, where each was on a machine of its own.
        data: The synthetic images.
        profile: The data set's profile. Its licence, class names and augmentation are shown.
        classifier: The classifier that was released with the images, or None.
    """
    datasheet = {
        "intended_use": "training and pre-training of image classifiers, federated or not",
        "out_of_scope": (
            "inference about single records, estimates of how common a class is at the client"
        ),
        "resolution": list(data.images.shape[1:]),
        "generator": generator,
        "known_failures": base.load(generator).KNOWN_FAILURES,
        "source_licence": profile.licence,
    }
    if profile.class_names:
        datasheet["class_names"] = profile.class_names
    augmentation = profile.augmentation.model_dump() if profile.augmentation else None
    datasheet |= {
        "training_augmentation": augmentation,
        "number_of_images": "a public parameter, independent of the number of records",
        "label_histogram": release["privacy"]["details"].get("labels"),
    }
    among = {name: release.get(name) for name in ("together", "sealed")}
    return {
        "schema": SCHEMA,
        "name": f"{dataset}/{client}/{generator}",
        "release": release["name"],
        **{name: value for name, value in among.items() if value},
        "privacy": release["privacy"],
        "weak": list(release["weak"]),
        "datasheet": datasheet,
        **({"classifier": _about(classifier, datasheet, profile)} if classifier else {}),
        "public_metrics": public_metrics(data, profile.classes),
    }


def _about(classifier: Weights, datasheet: dict, profile: Profile) -> dict:
    """Returns what a card says of a classifier."""
    return {
        "file": CLASSIFIER,
        "network": classifier.network,
        "shape": datasheet["resolution"],
        "classes": profile.classes,
        "privacy": "part of the same release, at no further privacy cost",
    }


def public_metrics(data: Images, classes: int) -> dict:
    """Returns the checks that look at the synthetic images alone.

    >>> data = Images(np.zeros((4, 2, 2, 1), np.uint8), np.array([0, 0, 1, 1]), np.full(4, -1))
    >>> metrics = public_metrics(data, classes=3)
    >>> metrics["images_per_class"], metrics["duplicate_rate"]
    ([2, 2, 0], 0.75)
    """
    flat = data.images.reshape(len(data), -1)
    per_class = np.bincount(data.labels, minlength=classes)
    means = data.pixels.reshape(len(data), -1).mean(1)
    distinct = len(np.unique(flat, axis=0))
    deviations = []
    for label in np.flatnonzero(per_class):
        deviations.append(flat[data.labels == label].std(0).mean() / 255)
    return {
        "images": len(data),
        "images_per_class": per_class.tolist(),
        "duplicate_rate": 1 - distinct / len(data),
        "pixel_mean": float(means.mean()),
        "pixel_deviation_within_class": float(np.mean(deviations)),
    }


def grid(data: Images, classes: int, names: list[str] | None = None) -> Image.Image:
    """Draws a row per class: its label and name, then up to ten images.

    A class without images leaves its row empty. If there are more than three channels the first
    three are shown, if there are two the first.

    Args:
        data: The images.
        classes: The declared number of classes.
        names: The classes' names, or None.
    """
    titles = [_title(label, names) for label in range(classes)]
    margin = _margin(titles) if names else MARGIN
    sheet = Image.new("RGB", (margin + COLUMNS * TILE, classes * TILE), "white")
    draw = ImageDraw.Draw(sheet)
    for label, title in enumerate(titles):
        draw.text((6, label * TILE + TILE // 3), title, fill="black")
        for column, row in enumerate(np.flatnonzero(data.labels == label)[:COLUMNS]):
            corner = (margin + column * TILE + 1, label * TILE + 1)
            sheet.paste(_tile(data.images[row]), corner)
    return sheet


def _tile(pixels: np.ndarray) -> Image.Image:
    """Returns one image [H, W, C] in colours, at the size of a tile of the grid."""
    shown = pixels[..., :3] if pixels.shape[-1] >= 3 else pixels[..., 0]
    size = (TILE - 2, TILE - 2)
    return Image.fromarray(shown).convert("RGB").resize(size, Image.Resampling.NEAREST)


def _title(label: int, names: list[str] | None) -> str:
    """Returns the label and the beginning of its name.

    Pillow's own font lacks most letters beyond ASCII, which become question marks.
    """
    if not names:
        return str(label)
    short = names[label]
    if len(short) > MOST_LETTERS:
        short = f"{short[: MOST_LETTERS - 3]}..."
    return f"{label} {short.encode('ascii', 'replace').decode()}"


def _margin(titles: list[str]) -> int:
    draw = ImageDraw.Draw(Image.new("RGB", (1, 1)))
    return max(MARGIN, 12 + math.ceil(max(draw.textlength(title) for title in titles)))
