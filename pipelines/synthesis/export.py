"""An export folder: images.npz, grid.png, card.json, card.md, SHA256SUMS. The only thing that leaves a client."""

import math
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from pipelines.datasets.labelled_images import Images
from pipelines.files import sha256, write_json
from pipelines.synthesis.card import markdown

COLUMNS = 10
MARGIN = 24  # pixels left of the grid, for the labels
TILE = 40
MOST_LETTERS = 24  # of a class's name in the picture


def write(folder: Path, data: Images, card: dict) -> None:
    names = card["datasheet"].get("class_names")
    data.save(folder / "images.npz", class_names=names)
    grid(data, classes=len(card["public_metrics"]["images_per_class"]), names=names).save(
        folder / "grid.png"
    )
    write_json(folder / "card.json", card)
    (folder / "card.md").write_text(markdown(card))
    files = sorted(path.name for path in folder.iterdir())
    (folder / "SHA256SUMS").write_text(
        "".join(f"{sha256(folder / name)}  {name}\n" for name in files)
    )


def grid(data: Images, classes: int, names: list[str] | None = None) -> Image.Image:
    """A row per class with its label and name, ten images each; a class without images leaves its row empty. Of more
    than three channels the first three are shown, of two the first."""
    titles = [_title(label, names) for label in range(classes)]
    margin = _margin(titles) if names else MARGIN
    sheet = Image.new("RGB", (margin + COLUMNS * TILE, classes * TILE), "white")
    draw = ImageDraw.Draw(sheet)
    for label, title in enumerate(titles):
        draw.text((6, label * TILE + TILE // 3), title, fill="black")
        for column, row in enumerate(np.flatnonzero(data.labels == label)[:COLUMNS]):
            pixels = data.images[row]
            pixels = pixels[..., :3] if pixels.shape[-1] >= 3 else pixels[..., 0]
            tile = (
                Image.fromarray(pixels)
                .convert("RGB")
                .resize((TILE - 2, TILE - 2), Image.Resampling.NEAREST)
            )
            sheet.paste(tile, (margin + column * TILE + 1, label * TILE + 1))
    return sheet


def _title(label: int, names: list[str] | None) -> str:
    """The label, with the beginning of its name; Pillow's own font lacks most letters beyond ASCII."""
    if not names:
        return str(label)
    short = (
        names[label]
        if len(names[label]) <= MOST_LETTERS
        else f"{names[label][: MOST_LETTERS - 3]}..."
    )
    return f"{label} {short.encode('ascii', 'replace').decode()}"


def _margin(titles: list[str]) -> int:
    draw = ImageDraw.Draw(Image.new("RGB", (1, 1)))
    return max(MARGIN, 12 + math.ceil(max(draw.textlength(title) for title in titles)))
