"""Tests torchvision's archives: read as they come, checked, downloaded if absent, and each failure
one sentence.

The archives are tiny and have torchvision's layout. Its tables of checksums are patched to theirs.
"""

import gzip
import hashlib
import http.server
import io
import os
import pickle
import tarfile
import threading
from functools import partial

import numpy as np
import pytest
from project import ROOT
from torchvision import datasets

from pipelines.datasets import sources, torchvision_sets
from pipelines.errors import UserError

SHARED = ROOT.parent / "shared" / "datasets"
NOWHERE = "http://127.0.0.1:9/"  # the discard port: refuses at once


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(
        side.to_bytes(4, "big") for side in array.shape
    )
    return gzip.compress(header + array.tobytes())


def md5(blob: bytes) -> str:
    return hashlib.md5(blob).hexdigest()


@pytest.fixture
def grey():
    rng = np.random.default_rng(0)
    parts = {"train": 30, "t10k": 20}
    images = {
        name: rng.integers(0, 256, (count, 6, 5)).astype(np.uint8) for name, count in parts.items()
    }
    return {
        name: (own, (np.arange(len(own)) % 10).astype(np.uint8)) for name, own in images.items()
    }


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """Makes the stage's working folder, apart from the root of raw files."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def mnist(grey, workplace, monkeypatch):
    """Makes a root with the four archives of a tiny MNIST, and no mirror that answers."""
    folder = workplace / "files" / "MNIST" / "raw"
    folder.mkdir(parents=True)
    table = []
    for part, (images, labels) in grey.items():
        for name, array in (
            (f"{part}-images-idx3-ubyte.gz", images),
            (f"{part}-labels-idx1-ubyte.gz", labels),
        ):
            (folder / name).write_bytes(idx(array))
            table.append((name, md5((folder / name).read_bytes())))
    monkeypatch.setattr(datasets.MNIST, "resources", table)
    monkeypatch.setattr(datasets.MNIST, "mirrors", [NOWHERE])
    return workplace / "files"


def read(root, name="mnist", classes=10, shape=(6, 5, 1)):
    return sources.read(name, name=name, classes=classes, shape=list(shape), root=root)


def files(folder) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): md5(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_archives_are_read_as_they_come_and_the_official_split_stays(mnist, grey):
    before = files(mnist)
    records, test = read(mnist)
    for data, (images, labels) in zip((records, test), grey.values()):
        np.testing.assert_array_equal(data.images[..., 0], images)
        np.testing.assert_array_equal(data.labels, labels)
        assert (data.images.dtype, data.labels.dtype, data.ids.dtype) == (
            np.uint8,
            np.int64,
            np.int64,
        )
    assert records.ids.tolist() == list(range(30)) and test.ids.tolist() == list(range(30, 50))
    assert files(mnist) == before  # nothing was unpacked there
    assert not list((mnist.parent / "project").rglob("*ubyte*"))  # nor left behind here


@pytest.mark.parametrize(
    "spoil", [lambda blob: blob[:-7], lambda blob: b"", lambda blob: blob[:40] + b"?" + blob[41:]]
)
@pytest.mark.parametrize("number", range(4))
def test_a_damaged_archive_is_named_and_left_as_it_is(mnist, number, spoil):
    path = sorted((mnist / "MNIST/raw").iterdir())[number]
    path.write_bytes(spoil(path.read_bytes()))
    before = files(mnist)
    with pytest.raises(
        UserError, match=f"{path.name} is corrupt: its MD5 is .*, the published file's is"
    ) as error:
        read(mnist)
    assert "\n" not in str(error.value) and files(mnist) == before


def test_an_intact_archive_of_other_images_is_as_corrupt(mnist, grey):
    """A readable .gz is not enough: the checksum decides."""
    path = mnist / "MNIST/raw/t10k-images-idx3-ubyte.gz"
    path.write_bytes(idx(255 - grey["t10k"][0]))
    with pytest.raises(UserError, match=r"t10k-images-idx3-ubyte\.gz is corrupt"):
        read(mnist)


def test_absent_and_no_network_says_what_to_put_where(mnist):
    (mnist / "MNIST/raw/t10k-labels-idx1-ubyte.gz").unlink()
    before = files(mnist)
    with pytest.raises(
        UserError, match=r"t10k-labels-idx1-ubyte\.gz is missing and could not be"
    ) as error:
        read(mnist)
    said = str(error.value)
    assert (
        "\n" not in said
        and "prepare.root" in said
        and "MNIST/raw/train-images-idx3-ubyte.gz" in said
    )
    assert files(mnist) == before


@pytest.fixture
def mirror(workplace):
    """Serves the folder `mirror` on this machine; yields (folder, address)."""
    folder = workplace / "mirror"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def test_what_is_absent_is_downloaded_whatever_mirror_answers(mnist, mirror, monkeypatch):
    folder, address = mirror
    monkeypatch.setattr(datasets.MNIST, "mirrors", [NOWHERE, address])
    expected = files(mnist)
    for path in list((mnist / "MNIST/raw").iterdir())[1:]:
        path.rename(folder / path.name)
    records, _ = read(mnist)
    assert len(records) == 30 and files(mnist) == expected
    (folder / "train-images-idx3-ubyte.gz").unlink(missing_ok=True)
    read(mnist)  # now found where it was put


def test_a_download_of_something_else_is_refused_and_leaves_nothing(mnist, mirror, monkeypatch):
    folder, address = mirror
    monkeypatch.setattr(datasets.MNIST, "mirrors", [address])
    (folder / "train-images-idx3-ubyte.gz").write_bytes(b"sign in to this hotel's network")
    (mnist / "MNIST/raw/train-images-idx3-ubyte.gz").unlink()
    before = files(mnist)
    with pytest.raises(UserError, match="missing and could not be downloaded"):
        read(mnist)
    assert files(mnist) == before


def cifar_archive(folder: str, members: dict[str, dict]) -> tuple[bytes, dict[str, str]]:
    buffer, sums = io.BytesIO(), {}
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            blob = pickle.dumps(content)
            sums[name] = md5(blob)
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(blob)
            tar.addfile(info, io.BytesIO(blob))
    return buffer.getvalue(), sums


@pytest.fixture
def cifar(workplace, monkeypatch):
    """Makes a tiny CIFAR of class `kind` under a root; returns (root, train images, train labels)."""

    def make(kind, key, train_files, test_file, classes):
        rng = np.random.default_rng(1)
        rows = {
            name: rng.integers(0, 256, (classes, 3072)).astype(np.uint8)
            for name in [*train_files, test_file]
        }
        members = {name: {"data": data, key: list(range(classes))} for name, data in rows.items()}
        meta = kind.meta["filename"]
        blob, sums = cifar_archive(
            kind.base_folder, {**members, meta: {kind.meta["key"]: ["a"] * classes}}
        )
        root = workplace / "files"
        root.mkdir()
        (root / kind.filename).write_bytes(blob)
        monkeypatch.setattr(kind, "tgz_md5", md5(blob))
        monkeypatch.setattr(kind, "train_list", [[name, sums[name]] for name in train_files])
        monkeypatch.setattr(kind, "test_list", [[test_file, sums[test_file]]])
        monkeypatch.setattr(kind, "meta", {**kind.meta, "md5": sums[meta]})
        monkeypatch.setattr(kind, "url", NOWHERE + kind.filename)
        return root, np.concatenate([rows[name] for name in train_files])

    return make


def naive_cifar(rows: np.ndarray) -> np.ndarray:
    """Each row is 1,024 reds, then greens, then blues, line by line."""
    images = np.zeros((len(rows), 32, 32, 3), np.uint8)
    for y in range(32):
        for x in range(32):
            for channel in range(3):
                images[:, y, x, channel] = rows[:, channel * 1024 + y * 32 + x]
    return images


def test_cifar10_is_read_from_its_archive(cifar):
    root, rows = cifar(
        datasets.CIFAR10, "labels", ["data_batch_1", "data_batch_2"], "test_batch", 10
    )
    records, test = read(root, "cifar10", shape=(32, 32, 3))
    np.testing.assert_array_equal(records.images, naive_cifar(rows))
    assert records.images.flags.c_contiguous
    assert records.labels.tolist() == [*range(10), *range(10)] and test.ids.tolist() == list(
        range(20, 30)
    )
    assert os.listdir(root) == ["cifar-10-python.tar.gz"]


def test_cifar100_has_its_fine_labels(cifar):
    root, rows = cifar(datasets.CIFAR100, "fine_labels", ["train"], "test", 100)
    records, _ = read(root, "cifar100", classes=100, shape=(32, 32, 3))
    np.testing.assert_array_equal(records.images, naive_cifar(rows))
    assert records.labels.tolist() == list(range(100))


def a_copy(root, count: int) -> None:
    """Writes cifar10.npz with so many records, and ten test images."""
    content = {}
    for part, images in (("train_", count), ("test_", 10)):
        content[f"{part}images"] = np.full((images, 32, 32, 3), images, np.uint8)
        content[f"{part}labels"] = np.arange(images) % 10
    np.savez(root / "cifar10.npz", **content)


def test_a_copy_in_one_npz_stands_in_for_an_archive_that_is_absent(workplace, capsys):
    a_copy(workplace, 30)
    records, test = read(workplace, "cifar10", shape=(32, 32, 3))
    assert len(records) == 30 and test.ids.tolist() == list(range(30, 40))
    assert np.all(records.images == 30) and np.all(test.images == 10)
    said = "cifar10.npz, which no published sum checks"
    assert said in capsys.readouterr().out
    assert os.listdir(workplace / "project") == []


def test_the_archive_is_read_where_a_copy_lies_beside_it(cifar):
    root, rows = cifar(datasets.CIFAR10, "labels", ["data_batch_1"], "test_batch", 10)
    a_copy(root, 30)
    records, _ = read(root, "cifar10", shape=(32, 32, 3))
    np.testing.assert_array_equal(records.images, naive_cifar(rows))


def test_a_damaged_cifar_archive_is_never_unpickled(cifar, monkeypatch):
    root, _ = cifar(datasets.CIFAR10, "labels", ["data_batch_1"], "test_batch", 10)
    path = root / "cifar-10-python.tar.gz"
    path.write_bytes(path.read_bytes() + b"\0")
    monkeypatch.setattr(pickle, "load", lambda *_, **__: pytest.fail("unpickled"))
    with pytest.raises(UserError, match=r"cifar-10-python\.tar\.gz is corrupt"):
        read(root, "cifar10", shape=(32, 32, 3))


def test_torchvision_s_own_tables_cover_every_data_set():
    """A new release that renames its tables would otherwise end in a traceback."""
    for name in torchvision_sets.CLASSES.values():
        for archive in torchvision_sets.archives(getattr(datasets, name)):
            assert len(archive.md5) == 32 and archive.mirrors
            assert all(mirror.endswith(archive.path.name) for mirror in archive.mirrors)


@pytest.mark.parametrize("name, folder", [("mnist", "MNIST"), ("fashion_mnist", "FashionMNIST")])
def test_the_real_archives_where_they_are_at_hand(name, folder, workplace):
    if not (SHARED / folder).exists():
        pytest.skip("the real archives are not beside the project")
    records, test = read(SHARED, name, shape=(28, 28, 1))
    for part, data, count in (("train", records, 60_000), ("t10k", test, 10_000)):
        raw = gzip.decompress((SHARED / folder / f"raw/{part}-images-idx3-ubyte.gz").read_bytes())
        labels = gzip.decompress(
            (SHARED / folder / f"raw/{part}-labels-idx1-ubyte.gz").read_bytes()
        )
        assert len(data) == count and len(raw) == 16 + 784 * count
        for row in (
            0,
            1,
            count // 3,
            count - 1,
        ):  # 16 bytes of header, then 784 of pixels each; 8, then one each
            assert data.images[row].tobytes() == raw[16 + 784 * row : 16 + 784 * (row + 1)]
            assert data.labels[row] == labels[8 + row]
