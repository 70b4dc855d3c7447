"""Writes a synthetic set once more, as a folder that other tools read.

`datasets.load_dataset(folder)` of Hugging Face loads it, and `mlcroissant` reads croissant.json.

    data/train-00000-of-00001.parquet   the images as PNG, their labels, the classes' names
    README.md                           the card, with the front matter that a hub reads
    croissant.json                      what stands where, for tools that know no such folder

It holds what images.npz and card.json hold, and nothing else. The same images and card give the
same bytes.
"""

from pathlib import Path

from pipelines.datasets.labelled_images import Images
from pipelines.synthesis import card_text
from pipelines.synthesis.hub import croissant, front_matter, parquet

FOLDER = "huggingface"
TABLE = "data/train-00000-of-00001.parquet"
CARD = "README.md"
CROISSANT = "croissant.json"
FILES = (TABLE, CARD, CROISSANT)


def write(folder: Path, data: Images, description: dict) -> None:
    """Writes the files into a new folder.

    Args:
        folder: Where the folder is made.
        data: The synthetic images.
        description: Their card, from `export.card`.
    """
    names = card_text.class_names(description)
    (folder / TABLE).parent.mkdir(parents=True)
    parquet.write(folder / TABLE, data, names)
    size = (folder / TABLE).stat().st_size
    matter = front_matter.text(description, data, names, size)
    (folder / CARD).write_text(f"{matter}\n\n{card_text.markdown(description)}")
    (folder / CROISSANT).write_text(croissant.text(description, data, folder, TABLE))
