import exported
import numpy as np

from pipelines.files import sha256
from pipelines.synthesis import hub


def sums(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path) for path in files}


def test_the_folder_holds_three_files(tmp_path):
    folder = exported.written(tmp_path / "own", exported.images()) / hub.FOLDER
    assert set(sums(folder)) == set(hub.FILES)


def test_the_same_images_give_the_same_bytes_and_others_give_others(tmp_path):
    first = sums(exported.written(tmp_path / "first", exported.images()))
    again = sums(exported.written(tmp_path / "again", exported.images()))
    assert again == first
    data = exported.images()
    data.images[7, 3, 3] ^= 1
    other = sums(exported.written(tmp_path / "other", data))
    changed = {name for name in first if other[name] != first[name]}
    table = f"{hub.FOLDER}/{hub.TABLE}"
    assert {table, f"{hub.FOLDER}/{hub.CROISSANT}"} <= changed


def test_ids_and_owners_are_not_carried(tmp_path):
    """The container has room for both; a release has neither."""
    folder = exported.written(tmp_path / "own", exported.images()) / hub.FOLDER
    from pyarrow import parquet

    table = parquet.read_table(folder / hub.TABLE)
    assert table.column_names == ["image", "label"]
    assert table.column("label").to_pylist() == (np.arange(40) % 4).tolist()
