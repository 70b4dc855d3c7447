"""Writes labelled images as one parquet file, which names its columns for Hugging Face's `datasets`.

Nothing in the file follows from the clock or the machine, so the same images give the same bytes.
"""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow
from PIL import Image
from pyarrow import parquet

from pipelines.datasets.labelled_images import Images
from pipelines.synthesis.hub import features

# rows that a reader takes at once
ROWS = 1000
PICTURE = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
ARRAY = pyarrow.list_(pyarrow.list_(pyarrow.list_(pyarrow.uint8())))


def write(path: Path, data: Images, names: list[str]) -> None:
    """Writes the columns `image` and `label`, a row per image, in their order.

    PNG is compressed already, so the file is not. Its options are all named here, because their
    defaults change between versions.

    Args:
        path: The file.
        data: The images.
        names: The classes' names, by label.
    """
    shape = list(data.images.shape[1:])
    pictures = _pictures(data.images) if features.is_picture(shape) else _arrays(data.images)
    columns = {"info": {"features": features.in_file(shape, names)}}
    schema = pyarrow.schema(
        [("image", pictures.type), ("label", pyarrow.int64())],
        metadata={"huggingface": json.dumps(columns)},
    )
    labels = pyarrow.array(data.labels, pyarrow.int64())
    table = pyarrow.Table.from_arrays([pictures, labels], schema=schema)
    parquet.write_table(
        table,
        path,
        row_group_size=ROWS,
        version="2.6",
        data_page_version="1.0",
        compression="none",
        use_dictionary=False,
        write_statistics=True,
        store_schema=True,
    )


def _pictures(images: np.ndarray) -> pyarrow.Array:
    """Returns a column of PNG files, each with a name by its row."""
    rows = []
    for row, image in enumerate(images):
        rows.append({"bytes": png(image), "path": f"{row:06d}.png"})
    return pyarrow.array(rows, PICTURE)


def _arrays(images: np.ndarray) -> pyarrow.Array:
    """Returns a column of arrays [H, W, C], as nested lists of numbers."""
    return pyarrow.array(images.tolist(), ARRAY)


def png(image: np.ndarray) -> bytes:
    """Returns one image [H, W, C] of one, three or four channels as a PNG file."""
    pixels = image[..., 0] if image.shape[-1] == 1 else image
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()
