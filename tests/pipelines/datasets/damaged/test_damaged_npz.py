"""Whatever an .npz of own images holds, `prepare` ends well or in a sentence, with nothing half-written."""

import io
import os
import struct
import zipfile

import numpy as np
import pytest
from damage import closed, ended, patched
from project import own_images

from pipelines.datasets.labelled_images import load
from pipelines.errors import UserError


@pytest.fixture
def file(raw):
    np.savez(raw / "own.npz", **own_images())
    return raw / "own.npz"


def changed(**arrays):
    def damage(file):
        content = {
            **own_images(),
            **{name: array for name, array in arrays.items() if array is not None},
        }
        kept = {
            name: array
            for name, array in content.items()
            if name not in arrays or arrays[name] is not None
        }
        np.savez(file, **kept)

    return damage


def headed(text: str, data: bytes = b""):
    """Returns `images` with a header that says so."""
    padded = text.encode().ljust(117) + b"\n"
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + data
    return members({"images.npy": member, "labels.npy": npy(own_images()["labels"])})


def shaped(shape: str, descr: str = "|u1"):
    return headed(f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}", bytes(640))


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def members(content: dict[str, bytes], **options):
    def damage(file):
        with zipfile.ZipFile(file, "w", **options) as archive:
            for name, data in content.items():
                archive.writestr(name, data)

    return damage


def around(before: bytes, after: bytes):
    return lambda file: file.write_bytes(before + file.read_bytes() + after)


def flagged(file):
    """Sets the flag that says a member is encrypted."""
    content = file.read_bytes()
    at = content.index(b"PK\x01\x02")
    file.write_bytes(patched(patched(content, at + 8, b"\x01"), 6, b"\x01"))


IMAGES, LABELS = own_images()["images"], own_images()["labels"]
GOOD = {"images.npy": npy(IMAGES), "labels.npy": npy(LABELS)}
COUNT = len(LABELS)
CORRUPT = "raw/own.npz is corrupt or truncated, not a readable .npz ("
NPZ = {
    "empty": (lambda file: file.write_bytes(b""), CORRUPT),
    "text": (lambda file: file.write_text("no archive"), CORRUPT),
    "a pickle": (lambda file: file.write_bytes(b"\x80\x04K\x01."), CORRUPT),
    "an npy": (
        lambda file: file.write_bytes(npy(IMAGES)),
        "is a single array, not a readable .npz. Save the arrays by",
    ),
    "an npy of objects": (
        lambda file: file.write_bytes(npy(np.zeros(2, object))),
        "is a single array, not a readable",
    ),
    "no member": (members({}), "must hold 'images' and 'labels'. Got [] instead"),
    "text in the archive": (
        members({"a.txt": b"x"}),
        "must hold 'images' and 'labels'. Got ['a.txt'] instead",
    ),
    "images that are no array": (members({**GOOD, "images.npy": b"text"}), "raw/own.npz"),
    "images without their ending": (
        members({"images": b"text", "labels.npy": npy(LABELS)}),
        "raw/own.npz",
    ),
    "a name that leads elsewhere": (members({**GOOD, "../../x.npy": npy(LABELS)}), COUNT),
    "a terminal's command in a name": (members({"\x1b[31m.npy": npy(LABELS)}), r"\x1b[31m"),
    "an object array beside": (changed(notes=np.array([{}], object)), COUNT),
    "bytes after the archive": (around(b"", b"x" * 99), COUNT),
    "bytes before the archive": (around(b"x" * 99, b""), COUNT),
    "deflated": (lambda file: np.savez_compressed(file, **own_images()), COUNT),
    "bzip2": (members(GOOD, compression=zipfile.ZIP_BZIP2), COUNT),
    "encrypted": (flagged, CORRUPT),
    "100 GB by its header": (shaped("(100000000000,)"), CORRUPT),
    "10 TB by its header": (shaped("(10000000000, 32, 32)"), CORRUPT),
    "10**30 by its header": (shaped(f"({10**30}, 8, 8)"), CORRUPT),
    "a negative shape": (shaped("(-1, 8, 8)"), "raw/own.npz"),
    "a shape of 70 axes": (shaped(f"({'1, ' * 33})"), "raw/own.npz"),
    "a shape of floats": (shaped("(1.5, 8)"), CORRUPT),
    "a header of code": (headed("__import__('os').abort()"), CORRUPT),
    "a header nested deep": (headed("(" * 110), CORRUPT),
    "a header with a warning": (
        headed(r"{'descr': '\d', 'fortran_order': False, 'shape': (1,)}"),
        CORRUPT,
    ),
    "a header of another version": (
        members({**GOOD, "images.npy": b"\x93NUMPY\x09\x00" + bytes(99)}),
        CORRUPT,
    ),
    "a structure": (shaped("(2,)", "[('a', '<i4')]"), "raw/own.npz"),
    "keys X and y": (
        lambda file: np.savez(file, X=IMAGES, y=LABELS),
        "Got ['X', 'y'] instead. Save the arrays by their names: np.savez('raw/own.npz', images=images, labels=labels)",
    ),
    "no labels": (changed(labels=None), "must hold 'images' and 'labels'. Got ['images'] instead"),
    "floats": (
        changed(images=IMAGES / 255),
        "Convert: images = np.rint(images * 255.0).astype(np.uint8).",
    ),
    "half floats": (
        changed(images=(IMAGES / 255).astype(np.float16)),
        "Convert: images = np.rint(images * 255.0)",
    ),
    "not a number": (changed(images=IMAGES * np.nan), "Convert: bring the pixels into [0, 255]"),
    "complex": (changed(images=IMAGES * 1j), "must be uint8 [n, H, W, C]. Got complex128"),
    "dates": (
        changed(images=IMAGES.astype("M8[s]")),
        "must be uint8 [n, H, W, C]. Got datetime64[s]",
    ),
    "texts": (changed(images=IMAGES.astype(str)), "must be uint8 [n, H, W, C]. Got <U3"),
    "objects": (
        changed(images=IMAGES.astype(object)),
        "'images' of raw/own.npz holds Python objects",
    ),
    "16 bits": (
        changed(images=IMAGES.astype(np.uint16) * 257),
        "Convert: images = (images >> 8).astype(np.uint8).",
    ),
    "signed bytes": (
        changed(images=IMAGES.astype(np.int8)),
        "must be uint8 [n, H, W, C]. Got int8",
    ),
    "flat": (
        changed(images=IMAGES.reshape(COUNT, 64)),
        "Convert: images = images.reshape(len(images), 8, 8, 1).",
    ),
    "one axis": (changed(images=IMAGES.ravel()), "must be uint8 [n, H, W, C]. Got uint8 (9600,)"),
    "no axis": (changed(images=np.uint8(7)), "must be uint8 [n, H, W, C]. Got uint8 ()"),
    "five axes": (
        changed(images=IMAGES[:, None, None]),
        "must be uint8 [n, H, W, C]. Got uint8 (150, 1, 1, 8, 8)",
    ),
    "no pixels": (
        changed(images=np.zeros((COUNT, 0, 0), np.uint8)),
        "The 'shape' parameter of profiles.own",
    ),
    "channels first": (
        changed(images=IMAGES[:, None]),
        "The images of own have their channels first, ['n', 1, 8, 8].",
    ),
    "three channels": (
        changed(images=np.stack([IMAGES] * 3, -1)),
        "The 'shape' parameter of profiles.own must be",
    ),
    "other sides": (
        changed(images=IMAGES[:, :7]),
        "The 'shape' parameter of profiles.own must be the images' own",
    ),
    "fewer labels": (changed(labels=LABELS[:100]), "Got 100 labels for 150 images instead."),
    "more labels": (changed(labels=np.arange(160) % 3), "Got 160 labels for 150 images instead."),
    "no records": (changed(images=IMAGES[:0], labels=LABELS[:0]), "Class 0 of own has no record"),
    "one record": (changed(images=IMAGES[:1], labels=LABELS[:1]), "Class 1 of own has no record"),
    "labels from 1": (
        changed(labels=LABELS + 1),
        "The labels of own must be in [0, 2]. Got 1 to 3 instead.",
    ),
    "labels below 0": (
        changed(labels=LABELS - 1),
        "The labels of own must be in [0, 2]. Got -1 to 1 instead.",
    ),
    "labels of 2**64 - 1": (
        changed(labels=np.where(LABELS == 2, 2**64 - 1, 0).astype(np.uint64)),
        "'labels' of raw/own.npz must be below 2**63. Got 18446744073709551615 instead.",
    ),
    "labels of floats": (
        changed(labels=LABELS * 1.0),
        "Convert: labels = labels.astype(np.int64).",
    ),
    "labels of truth": (changed(labels=LABELS > 0), "Convert: labels = labels.astype(np.int64)."),
    "labels of texts": (
        changed(labels=np.array(["b", "a", "c"])[LABELS]),
        "np.unique(labels.astype(str), return_inverse=True)",
    ),
    "labels of bytes": (
        changed(labels=LABELS.astype("S")),
        "np.unique(labels.astype(str), return_inverse=True)",
    ),
    "labels of objects": (
        changed(labels=LABELS.astype(object)),
        "labels = labels.astype(np.int64), or, where they are",
    ),
    "one label a row": (changed(labels=np.eye(3)[LABELS]), "labels = labels.argmax(1)."),
    "labels in a column": (
        changed(labels=LABELS[:, None]),
        "labels = labels.ravel().astype(np.int64).",
    ),
    "small labels": (changed(labels=LABELS.astype(np.uint8)), COUNT),
    "labels of the other byte order": (changed(labels=LABELS.astype(">i4")), COUNT),
    "images in columns": (changed(images=np.asfortranarray(IMAGES)), COUNT),
    "a class that is missing": (
        changed(labels=np.minimum(LABELS, 1)),
        "Class 2 of own has no record at all",
    ),
    "ids twice": (
        changed(ids=np.arange(COUNT) // 2),
        "The ids of own must name one record each. Got 0 twice",
    ),
    "ids below 0": (changed(ids=np.arange(COUNT) - 1), "The ids of own must be 0 or above"),
    "ids of 2**64 - 1": (
        changed(ids=2**64 - 1 - np.arange(COUNT, dtype=np.uint64)),
        "must be below 2**63.",
    ),
    "ids of floats": (changed(ids=np.arange(COUNT) * 1.0), "'ids' of raw/own.npz must be ints [n]"),
    "ids of texts": (
        changed(ids=np.arange(COUNT).astype(str)),
        "'ids' of raw/own.npz must be ints [n]",
    ),
    "ids of objects": (
        changed(ids=np.arange(COUNT).astype(object)),
        "'ids' of raw/own.npz holds Python objects",
    ),
    "fewer ids": (changed(ids=np.arange(9)), "Got 9 ids for 150 images instead."),
    "large ids": (changed(ids=2**63 - 1 - np.arange(COUNT, dtype=np.int64)), COUNT),
    "class names": (changed(class_names=np.array(["b", "a", "c"])), COUNT),
    "a terminal's command in a class name": (
        changed(class_names=np.array(["\x1b[2J", "\n", "\u202e"])),
        COUNT,
    ),
    "fewer class names": (
        changed(class_names=np.array(["a"])),
        "'class_names' of raw/own.npz must name 3 classes",
    ),
    "class names of numbers": (
        changed(class_names=np.arange(3)),
        "'class_names' of raw/own.npz must be strings",
    ),
    "class names of objects": (
        changed(class_names=np.array(["a"], object)),
        "'class_names' of raw/own.npz holds Python",
    ),
    "no file": (
        lambda file: file.unlink(),
        "raw/own.npz is missing. Put it there, or name the folder",
    ),
    "a folder": (lambda file: (file.unlink(), file.mkdir()), "raw/own.npz is no file."),
    "a pipe": (lambda file: (file.unlink(), os.mkfifo(file)), "raw/own.npz is no file."),
    "an endless device": (
        lambda file: (file.unlink(), file.symlink_to("/dev/zero")),
        "raw/own.npz is no file.",
    ),
    "a link that leads nowhere": (
        lambda file: (file.unlink(), file.symlink_to("absent")),
        "raw/own.npz is missing.",
    ),
    "a link in a circle": (
        lambda file: (file.unlink(), file.symlink_to(file)),
        "raw/own.npz is missing.",
    ),
    "a link": (lambda file: (file.rename("x.npz"), file.symlink_to("../x.npz")), COUNT),
    "no permission": (lambda file: closed("own.npz")(file.parent), CORRUPT),
}


@pytest.mark.parametrize("case", NPZ)
def test_a_damaged_npz(file, prepared, case):
    damage, wanted = NPZ[case]
    damage(file)
    outcome = prepared("npz")
    if isinstance(wanted, str):
        assert isinstance(outcome, str) and wanted in outcome
        assert "\n" not in outcome
    else:
        assert outcome == wanted


@pytest.mark.parametrize("part", range(8))
def test_an_npz_that_is_cut_anywhere(file, part):
    content = file.read_bytes()
    for end in range(part * 97, len(content), 997):
        file.write_bytes(content[:end])
        assert ended(lambda: load(file)).startswith("Error: ")


@pytest.mark.parametrize("packed", [False, True])
def test_flipped_bits_of_an_npz_are_a_sentence_or_harmless(file, packed):
    (np.savez_compressed if packed else np.savez)(file, **own_images())
    content, rng, refused = file.read_bytes(), np.random.default_rng(0), 0
    tail = content.index(b"PK\x01\x02")
    for position in (*range(0, 260, 2), *range(tail, len(content)), *rng.integers(260, tail, 60)):
        file.write_bytes(
            patched(content, position, bytes([content[position] ^ 1 << int(position) % 8]))
        )
        try:
            found = load(file)
        except UserError as error:
            refused += str(error).isprintable()
        else:
            np.testing.assert_array_equal(found.images[..., 0], IMAGES)
            np.testing.assert_array_equal(found.labels, LABELS)
    assert refused > 100
