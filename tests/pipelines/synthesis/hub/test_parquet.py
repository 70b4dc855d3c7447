import io

import exported
import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet as reader

from pipelines.synthesis.hub import parquet


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_picture_loses_nothing(channels):
    """Nor where the fourth channel, which viewers take for opacity, is 0."""
    image = exported.images(1, channels).images[0]
    image[0, 0, -1] = 0
    shown = np.asarray(Image.open(io.BytesIO(parquet.png(image))))
    assert np.array_equal(shown.reshape(image.shape), image)


def test_pictures_have_names_by_row_and_stand_in_groups(tmp_path):
    data = exported.images(parquet.ROWS + 1)
    parquet.write(tmp_path / "table", data, list("0123"))
    table = reader.ParquetFile(tmp_path / "table")
    assert table.metadata.num_row_groups == 2
    last = table.read().column("image")[parquet.ROWS].as_py()
    assert last["path"] == f"{parquet.ROWS:06d}.png"
    assert last["bytes"] == parquet.png(data.images[parquet.ROWS])
