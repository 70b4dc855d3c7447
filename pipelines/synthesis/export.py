"""An export folder: images.npz, grid.png, card.json, card.md, SHA256SUMS. The only thing that leaves a client."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from pipelines.datasets.containers import Images
from pipelines.files import sha256, write_json
from pipelines.synthesis.card import markdown

COLUMNS = 10
MARGIN = 24  # pixels left of the grid, for the labels
TILE = 40


def write(folder: Path, data: Images, card: dict) -> None:
    data.save(folder / "images.npz")
    grid(data, classes=len(card["public_metrics"]["images_per_class"])).save(folder / "grid.png")
    write_json(folder / "card.json", card)
    (folder / "card.md").write_text(markdown(card))
    names = sorted(path.name for path in folder.iterdir())
    (folder / "SHA256SUMS").write_text("".join(f"{sha256(folder / name)}  {name}\n" for name in names))


def grid(data: Images, classes: int) -> Image.Image:
    """A row per class with its label, ten images each; a class without images leaves its row empty. Of more than three
    channels the first three are shown, of two the first."""
    sheet = Image.new("RGB", (MARGIN + COLUMNS * TILE, classes * TILE), "white")
    draw = ImageDraw.Draw(sheet)
    for label in range(classes):
        draw.text((6, label * TILE + TILE // 3), str(label), fill="black")
        for column, row in enumerate(np.flatnonzero(data.labels == label)[:COLUMNS]):
            pixels = data.images[row]
            pixels = pixels[..., :3] if pixels.shape[-1] >= 3 else pixels[..., 0]
            tile = Image.fromarray(pixels).convert("RGB").resize((TILE - 2, TILE - 2), Image.Resampling.NEAREST)
            sheet.paste(tile, (MARGIN + column * TILE + 1, label * TILE + 1))
    return sheet
