"""Whatever lies in the folder of raw files, `prepare` ends well or in sentences, at once, with nothing half-written."""

import io
import os
import socket
import struct
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image, PngImagePlugin
from project import ROOT, own_images, tiny
from ruamel.yaml import YAML

from pipelines.config import Params
from pipelines.datasets import image_folder
from pipelines.datasets.containers import load
from pipelines.errors import UserError, told_in_a_sentence
from stages import prepare

CLASSES = ("Bee", "ant", "cat")
EACH = 5
WHOLE = len(CLASSES) * EACH  # images of the undamaged folder
TARGET = "own/ant/2.png"
FORMATS = {"PNG": "png", "JPEG": "jpg", "BMP": "bmp", "TIFF": "tif", "WEBP": "webp", "GIF": "gif", "PPM": "pgm"}


@pytest.fixture(scope="module")
def params() -> dict:
    content = YAML(typ="safe").load((ROOT / "params.yaml").read_text())
    tiny(content)
    content["prepare"]["public_fraction"] = 0.0
    return content


@pytest.fixture
def raw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


@pytest.fixture
def folder(raw):
    """raw/own with five images in each of three classes."""
    for label, name in enumerate(CLASSES):
        (raw / "own" / name).mkdir(parents=True)
        for number in range(EACH):
            noise(label * EACH + number).save(raw / f"own/{name}/{number}.png")
    return raw


def noise(seed: int, side: int = 24) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (side, side)).astype(np.uint8))


def encoded(kind: str, image: Image.Image | None = None, **options) -> bytes:
    buffer = io.BytesIO()
    (image or noise(99)).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.fixture
def prepared(params, tmp_path, capfd):
    """Runs prepare as its command does; returns the error's text, or the number of records it wrote."""

    def run(source: str, **changes) -> str | int:
        content = {**params, "prepare": {**params["prepare"], **changes}}
        content["profiles"] = {**params["profiles"], "own": {**params["profiles"]["own"], "source": source}}
        said = ended(lambda: prepare.run(Params.model_validate(content), "own"))
        partial = tmp_path / ".scratch/partial"
        assert not partial.exists() or not list(partial.iterdir())
        out, err = capfd.readouterr()
        assert "Warning" not in err and "\x1b" not in out and all(line.isprintable() for line in out.splitlines())
        made = tmp_path / "data/private/own/prepared"
        if said is not None:
            assert not made.exists()
            return said
        return sum(len(load(made / f"{part}.npz")) for part in ("pool", "test", "public"))

    return run


def ended(action) -> str | None:
    """What a command that does this ends with: None, or lines that a terminal may show."""
    try:
        with told_in_a_sentence():
            action()
    except SystemExit as error:
        assert isinstance(error.code, str) and error.code.startswith("Error: ")
        for line in error.code.splitlines():
            assert line.isprintable() and line.rstrip(")").endswith((".", "params.yaml")), line
        return error.code
    return None


# --- the folder of images: what is done to it, and a part of the sentence or the number of records ---


def put(name: str, content: bytes):
    def damage(raw):
        (raw / name).write_bytes(content)

    return damage


def png(width: int, height: int, rows: bytes = b"", more: bytes = b"") -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + more + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def patched(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


def jpeg_of(width: int, height: int) -> bytes:
    content = encoded("JPEG")
    return patched(content, content.index(b"\xff\xc0") + 5, struct.pack(">HH", height, width))


def tiff_of(width: int) -> bytes:
    """The width and the height stand in the first two entries of the directory."""
    content = encoded("TIFF")
    directory = struct.unpack("<I", content[4:8])[0] + 2
    for entry in (directory, directory + 12):
        kind = 4 if struct.unpack("<H", content[entry + 2 : entry + 4])[0] == 4 else 3
        content = patched(content, entry + 8, struct.pack("<I" if kind == 4 else "<HH", *([width] + [0] * (4 - kind))))
    return content


def linked(name: str, target: str):
    return lambda raw: (raw / name).symlink_to(target)


def piped(name: str):
    return lambda raw: os.mkfifo(raw / name)


def socket_at(raw):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("raw/own/ant/s.png")


def device_at(raw):
    try:
        os.mknod(raw / "own/ant/d.png", 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes a device")


def renamed(old: str, new: bytes):
    return lambda raw: os.rename(os.fsencode(raw / old), os.fsencode(raw) + b"/" + new)


def removed(name: str):
    def damage(raw):
        for file in (raw / name).iterdir():
            file.unlink()
        (raw / name).rmdir()

    return damage


def emptied(name: str):
    def damage(raw):
        for file in (raw / name).iterdir():
            file.unlink()

    return damage


def closed(name: str):
    def damage(raw):
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        (raw / name).chmod(0)

    return damage


BAD = "own/ant/2.png is no readable image ("
LARGE = "it has more than 100,000,000 pixels"
NONE = "its content is none of PNG, JPEG"
APNG = {"save_all": True, "append_images": [noise(1), noise(2)]}
FOLDER = {
    "zero bytes": (put(TARGET, b""), BAD),
    "text": (put(TARGET, b"no image"), NONE),
    "html": (put(TARGET, b"<html><body>404 Not Found</body></html>"), NONE),
    "eps": (put(TARGET, b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EOF"), NONE),
    "pdf": (put(TARGET, b"%PDF-1.4\n1 0 obj<<>>endobj\n%%EOF"), NONE),
    "svg": (put(TARGET, b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"), NONE),
    "a zip": (put(TARGET, b"PK\x03\x04" + bytes(200)), NONE),
    "an ico": (put(TARGET, encoded("ICO")), NONE),
    "a tga": (put(TARGET, encoded("TGA")), NONE),
    "a pcx": (put(TARGET, encoded("PCX")), NONE),
    "an icns's head": (put(TARGET, b"icns" + bytes(60)), NONE),
    "a dicom's head": (put(TARGET, bytes(128) + b"DICM" + bytes(60)), NONE),
    "a git lfs pointer": (put(TARGET, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"), NONE),
    "a png's head alone": (put(TARGET, encoded("PNG")[:8]), BAD),
    "a png without pixels": (put(TARGET, png(9, 9)), BAD),
    "a png with too few pixels": (put(TARGET, png(9, 9, bytes(20))), None),
    "a png of no width": (put(TARGET, png(0, 9, bytes(9))), BAD),
    "a png whose text unpacks to 100 MB": (
        put(TARGET, png(2, 2, bytes(6), chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(10**8), 1)))),
        BAD,
    ),
    "a png of 3.6 Gpx": (put(TARGET, png(60_000, 60_000, bytes(99))), LARGE),
    "a png of 2**62 pixels": (put(TARGET, png(2**31 - 1, 2**31 - 1, bytes(99))), LARGE),
    "a png just above the limit": (put(TARGET, png(10_000, 10_001, bytes(99))), LARGE),
    "a png just below the limit": (put(TARGET, png(10_000, 9_999, bytes(99))), BAD),
    "a gif of 4 Gpx": (put(TARGET, patched(encoded("GIF"), 6, b"\xff\xff\xff\xff")), LARGE),
    "a bmp of 4 Gpx": (put(TARGET, patched(encoded("BMP"), 18, struct.pack("<ii", 65_535, 65_535))), LARGE),
    "a bmp of negative width": (put(TARGET, patched(encoded("BMP"), 18, struct.pack("<i", -9))), BAD),
    "a ppm of 10 Gpx": (put(TARGET, b"P5 99999 99999 255\n" + bytes(99)), LARGE),
    "a ppm of endless digits": (put(TARGET, b"P5 " + b"9" * 5000 + b" 1 255\n"), BAD),
    "a jpeg of 4 Gpx": (put(TARGET, jpeg_of(65_000, 65_000)), LARGE),
    "a tiff of 3 Gpx": (put(TARGET, tiff_of(60_000)), LARGE),
    "floats": (put("own/ant/f.tif", encoded("TIFF", Image.fromarray(np.ones((4, 4), np.float32)))), "8 or 16 bits"),
    "32-bit ints": (put("own/ant/i.tif", encoded("TIFF", Image.fromarray(np.ones((4, 4), np.int32)))), "8 or 16 bits"),
    "a format that is not read": (put("own/ant/x.heic", b"anything"), "only PNG, JPEG, BMP, TIFF, WEBP, GIF, PPM are"),
    "a folder named as an image": (lambda raw: (raw / "own/ant/x.png").mkdir(), WHOLE),
    "a file in the place of the data set": (
        lambda raw: ((raw / "own").rename(raw / "away"), (raw / "own").touch()),
        "raw/own is missing",
    ),
    "a file beside the classes": (put("own/notes.txt", b"x"), WHOLE),
    "an image beside the classes": (put("own/x.png", encoded("PNG")), WHOLE),
    "a damaged image beside the classes": (put("own/x.png", b""), WHOLE),
    "windows' files": (put("own/ant/Thumbs.db", b"\xd0\xcf\x11\xe0"), WHOLE),
    "a hidden file": (put("own/ant/.DS_Store", b"x"), WHOLE),
    "a mac's shadow of an image": (put("own/ant/._2.png", b"\0\5\x16\7"), WHOLE),
    "no ending": (put("own/ant/IMG_0001", encoded("PNG")), WHOLE),
    "capital ending": (put("own/ant/X.PNG", encoded("PNG")), WHOLE + 1),
    "a link to a folder": (linked("own/dog", "cat"), "own/dog is a link, behind which DVC sees no change"),
    "a link to a folder below": (linked("own/cat/dog", "../ant"), "own/cat/dog is a link"),
    "a link to the folder above": (linked("own/cat/dog", ".."), "own/cat/dog is a link"),
    "a link to a file": (linked("own/ant/x.png", "2.png"), WHOLE + 1),
    "a link to a file elsewhere": (
        lambda raw: ((raw.parent / "x").write_bytes(encoded("PNG")), (raw / "own/ant/x.png").symlink_to("../../../x")),
        WHOLE + 1,
    ),
    "a link that leads nowhere": (linked("own/ant/x.png", "absent"), "x.png is no readable image (No such file"),
    "a link in a circle": (linked("own/ant/x.png", "x.png"), "x.png is no readable image (Too many levels"),
    "a link to an endless device": (linked("own/ant/x.png", "/dev/zero"), WHOLE),
    "a link to a private file": (linked("own/ant/x.png", "/etc/passwd"), NONE),
    "a pipe": (piped("own/ant/x.png"), WHOLE),
    "a pipe beside the classes": (piped("own/x.png"), WHOLE),
    "a socket": (socket_at, WHOLE),
    "a device": (device_at, WHOLE),
    "no permission for a file": (closed(TARGET), "2.png is no readable image (Permission denied)"),
    "no permission for a class": (closed("own/ant"), "raw/own/ant cannot be read: Permission denied."),
    "a line break in a name": (renamed(TARGET, b"own/ant/a\nb.png"), WHOLE),
    "a line break in a bad name": (put("own/ant/a\nError: all is well.png", b""), r"a\nError: all is well.png is no"),
    "a terminal's command in a bad name": (
        put("own/ant/\x1b]0;x\x07\x1b[2J.png", b""),
        r"\x1b]0;x\x07\x1b[2J.png is no",
    ),
    "a terminal's command in another file": (put("own/ant/\x1b[31m.txt", b""), WHOLE),
    "a terminal's command in a class": (renamed("own/cat", b"own/cat\x1b[31m\n"), WHOLE),
    "a name from right to left": (put("own/ant/\u202egnp.exe.png", b""), r"\u202egnp.exe.png is no"),
    "a name that is not utf-8": (renamed(TARGET, b"own/ant/\xff\xfe.png"), WHOLE),
    "a bad name that is not utf-8": (lambda raw: open(b"raw/own/ant/\xff.png", "wb").close(), r"\udcff.png is no"),
    "a class that is not utf-8": (renamed("own/cat", b"own/\xff"), WHOLE),
    "two ways to write one letter": (
        lambda raw: [put(f"own/ant/{name}.png", encoded("PNG"))(raw) for name in ("\u00e9", "e\u0301")],
        WHOLE + 2,
    ),
    "the longest name": (put(f"own/ant/{'x' * 251}.png", encoded("PNG")), WHOLE + 1),
    "quotes and blanks": (put("own/ant/ '\"$(x) %s {0}.png", encoded("PNG")), WHOLE + 1),
    "a dash first": (put("own/ant/-rf.png", encoded("PNG")), WHOLE + 1),
    "no folder at all": (lambda raw: (raw / "own").rename(raw / "away"), "raw/own is missing. Put a folder per class"),
    "an empty folder": (
        lambda raw: ((raw / "own").rename(raw / "away"), (raw / "own").mkdir()),
        "raw/own holds no folder",
    ),
    "a class without images": (emptied("own/ant"), "Class 1 of own has no record"),
    "a class of other files": (
        lambda raw: (emptied("own/ant")(raw), put("own/ant/readme.txt", b"x")(raw)),
        "Class 1 of own has no record",
    ),
    "a class that is missing": (removed("own/cat"), "Class 2 of own has no record"),
    "a class too many": (
        lambda raw: ((raw / "own/dog").mkdir(), put("own/dog/0.png", encoded("PNG"))(raw)),
        "The labels of own must be in [0, 2]. Got 0 to 3",
    ),
    "an empty class too many": (lambda raw: (raw / "own/dog").mkdir(), "The 'classes' parameter of profiles.own"),
    "an animation": (put("own/ant/x.png", encoded("PNG", **APNG)), WHOLE + 1),
    "an animated gif": (put("own/ant/x.gif", encoded("GIF", **APNG)), WHOLE + 1),
    "several pages": (put("own/ant/x.tif", encoded("TIFF", **APNG)), WHOLE + 1),
    "one pixel": (put("own/ant/x.png", encoded("PNG", noise(1, side=1))), WHOLE + 1),
    "a line": (put("own/ant/x.png", encoded("PNG", noise(1).resize((9000, 1)))), WHOLE + 1),
    "a broken exif": (put("own/ant/x.jpg", encoded("JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff")), None),
    "a broken colour profile": (put("own/ant/x.png", encoded("PNG", icc_profile=b"x" * 99)), WHOLE + 1),
    "a salt of an earlier root": (put("own/salt", bytes(99)), WHOLE),
}


@pytest.mark.parametrize("case", FOLDER)
def test_a_damaged_folder(folder, prepared, case):
    damage, wanted = FOLDER[case]
    damage(folder)
    outcome = prepared("folder")
    if isinstance(wanted, str):
        assert isinstance(outcome, str) and wanted in outcome
    elif wanted is not None:
        assert outcome == wanted


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.95])
def test_an_image_that_is_cut(folder, prepared, kind, share):
    content = encoded(kind)
    name = f"own/ant/cut.{FORMATS[kind]}"
    (folder / name).write_bytes(content[: max(1, int(len(content) * share))])
    assert f"{name} is no readable image (" in prepared("folder")


@pytest.mark.parametrize("kind", FORMATS)
def test_an_image_under_the_ending_of_another(folder, prepared, kind):
    for ending in FORMATS.values():
        (folder / f"own/ant/as.{ending}").write_bytes(encoded(kind))
    assert prepared("folder") == WHOLE + len(FORMATS)


@pytest.mark.parametrize("kind", FORMATS)
def test_flipped_bits_of_an_image_are_a_sentence_or_an_image(tmp_path, capfd, kind):
    content, file, rng = encoded(kind), tmp_path / f"x.{FORMATS[kind]}", np.random.default_rng(0)
    refused = 0
    for position in (*range(40), *rng.integers(40, len(content), 60)):
        file.write_bytes(patched(content, position, bytes([content[position] ^ 1 << int(position) % 8])))
        try:
            assert image_folder.picture(file, [8, 8, 3]).shape == (8, 8, 3)
        except UserError as error:
            refused += 1
            assert str(error).isprintable() and "is no readable image (" in str(error)
    assert refused > 5
    assert capfd.readouterr() == ("", "")


def test_all_damages_at_once_are_told_at_once(folder, prepared):
    for number in range(15):
        (folder / f"own/ant/x{number:02d}.png").write_bytes(b"")
    *named, last = prepared("folder").splitlines()
    assert len(named) == 10 and "own has 15 images that cannot be read." in last
    assert prepared("folder", on_unreadable="skip") == WHOLE


# --- the .npz ---


@pytest.fixture
def file(raw):
    np.savez(raw / "own.npz", **own_images())
    return raw / "own.npz"


def changed(**arrays):
    def damage(file):
        content = {**own_images(), **{name: array for name, array in arrays.items() if array is not None}}
        kept = {name: array for name, array in content.items() if name not in arrays or arrays[name] is not None}
        np.savez(file, **kept)

    return damage


def headed(text: str, data: bytes = b""):
    """`images` with a header that says so."""
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
    """The flag that says a member is encrypted."""
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
    "an npy of objects": (lambda file: file.write_bytes(npy(np.zeros(2, object))), "is a single array, not a readable"),
    "no member": (members({}), "must hold 'images' and 'labels'. Got [] instead"),
    "text in the archive": (members({"a.txt": b"x"}), "must hold 'images' and 'labels'. Got ['a.txt'] instead"),
    "images that are no array": (members({**GOOD, "images.npy": b"text"}), "raw/own.npz"),
    "images without their ending": (members({"images": b"text", "labels.npy": npy(LABELS)}), "raw/own.npz"),
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
    "a header of code": (headed("__import__('os').system('touch /tmp/h7-owned')"), CORRUPT),
    "a header nested deep": (headed("(" * 110), CORRUPT),
    "a header with a warning": (headed(r"{'descr': '\d', 'fortran_order': False, 'shape': (1,)}"), CORRUPT),
    "a header of another version": (members({**GOOD, "images.npy": b"\x93NUMPY\x09\x00" + bytes(99)}), CORRUPT),
    "a structure": (shaped("(2,)", "[('a', '<i4')]"), "raw/own.npz"),
    "keys X and y": (
        lambda file: np.savez(file, X=IMAGES, y=LABELS),
        "Got ['X', 'y'] instead. Save the arrays by their names: np.savez('raw/own.npz', images=images, labels=labels)",
    ),
    "no labels": (changed(labels=None), "must hold 'images' and 'labels'. Got ['images'] instead"),
    "floats": (changed(images=IMAGES / 255), "Convert: images = np.rint(images * 255.0).astype(np.uint8)."),
    "half floats": (changed(images=(IMAGES / 255).astype(np.float16)), "Convert: images = np.rint(images * 255.0)"),
    "not a number": (changed(images=IMAGES * np.nan), "Convert: bring the pixels into [0, 255]"),
    "complex": (changed(images=IMAGES * 1j), "must be uint8 [n, H, W, C]. Got complex128"),
    "dates": (changed(images=IMAGES.astype("M8[s]")), "must be uint8 [n, H, W, C]. Got datetime64[s]"),
    "texts": (changed(images=IMAGES.astype(str)), "must be uint8 [n, H, W, C]. Got <U3"),
    "objects": (changed(images=IMAGES.astype(object)), "'images' of raw/own.npz holds Python objects"),
    "16 bits": (changed(images=IMAGES.astype(np.uint16) * 257), "Convert: images = (images >> 8).astype(np.uint8)."),
    "signed bytes": (changed(images=IMAGES.astype(np.int8)), "must be uint8 [n, H, W, C]. Got int8"),
    "flat": (changed(images=IMAGES.reshape(COUNT, 64)), "Convert: images = images.reshape(len(images), 8, 8, 1)."),
    "one axis": (changed(images=IMAGES.ravel()), "must be uint8 [n, H, W, C]. Got uint8 (9600,)"),
    "no axis": (changed(images=np.uint8(7)), "must be uint8 [n, H, W, C]. Got uint8 ()"),
    "five axes": (changed(images=IMAGES[:, None, None]), "must be uint8 [n, H, W, C]. Got uint8 (150, 1, 1, 8, 8)"),
    "no pixels": (changed(images=np.zeros((COUNT, 0, 0), np.uint8)), "The 'shape' parameter of profiles.own"),
    "channels first": (
        changed(images=IMAGES[:, None]),
        "The images of own have their channels first, ['n', 1, 8, 8].",
    ),
    "three channels": (changed(images=np.stack([IMAGES] * 3, -1)), "The 'shape' parameter of profiles.own must be"),
    "other sides": (changed(images=IMAGES[:, :7]), "The 'shape' parameter of profiles.own must be the images' own"),
    "fewer labels": (changed(labels=LABELS[:100]), "Got 100 labels for 150 images instead."),
    "more labels": (changed(labels=np.arange(160) % 3), "Got 160 labels for 150 images instead."),
    "no records": (changed(images=IMAGES[:0], labels=LABELS[:0]), "Class 0 of own has no record"),
    "one record": (changed(images=IMAGES[:1], labels=LABELS[:1]), "Class 1 of own has no record"),
    "labels from 1": (changed(labels=LABELS + 1), "The labels of own must be in [0, 2]. Got 1 to 3 instead."),
    "labels below 0": (changed(labels=LABELS - 1), "The labels of own must be in [0, 2]. Got -1 to 1 instead."),
    "labels of 2**64 - 1": (
        changed(labels=np.where(LABELS == 2, 2**64 - 1, 0).astype(np.uint64)),
        "'labels' of raw/own.npz must be below 2**63. Got 18446744073709551615 instead.",
    ),
    "labels of floats": (changed(labels=LABELS * 1.0), "Convert: labels = labels.astype(np.int64)."),
    "labels of truth": (changed(labels=LABELS > 0), "Convert: labels = labels.astype(np.int64)."),
    "labels of texts": (
        changed(labels=np.array(CLASSES)[LABELS]),
        "np.unique(labels.astype(str), return_inverse=True)",
    ),
    "labels of bytes": (changed(labels=LABELS.astype("S")), "np.unique(labels.astype(str), return_inverse=True)"),
    "labels of objects": (
        changed(labels=LABELS.astype(object)),
        "labels = labels.astype(np.int64), or, where they are",
    ),
    "one label a row": (changed(labels=np.eye(3)[LABELS]), "labels = labels.argmax(1)."),
    "labels in a column": (changed(labels=LABELS[:, None]), "labels = labels.ravel().astype(np.int64)."),
    "small labels": (changed(labels=LABELS.astype(np.uint8)), COUNT),
    "labels of the other byte order": (changed(labels=LABELS.astype(">i4")), COUNT),
    "images in columns": (changed(images=np.asfortranarray(IMAGES)), COUNT),
    "a class that is missing": (changed(labels=np.minimum(LABELS, 1)), "Class 2 of own has no record at all"),
    "ids twice": (changed(ids=np.arange(COUNT) // 2), "The ids of own must name one record each. Got 0 twice"),
    "ids below 0": (changed(ids=np.arange(COUNT) - 1), "The ids of own must be 0 or above"),
    "ids of 2**64 - 1": (changed(ids=2**64 - 1 - np.arange(COUNT, dtype=np.uint64)), "must be below 2**63."),
    "ids of floats": (changed(ids=np.arange(COUNT) * 1.0), "'ids' of raw/own.npz must be ints [n]"),
    "ids of texts": (changed(ids=np.arange(COUNT).astype(str)), "'ids' of raw/own.npz must be ints [n]"),
    "ids of objects": (changed(ids=np.arange(COUNT).astype(object)), "'ids' of raw/own.npz holds Python objects"),
    "fewer ids": (changed(ids=np.arange(9)), "Got 9 ids for 150 images instead."),
    "large ids": (changed(ids=2**63 - 1 - np.arange(COUNT, dtype=np.int64)), COUNT),
    "class names": (changed(class_names=np.array(CLASSES)), COUNT),
    "a terminal's command in a class name": (changed(class_names=np.array(["\x1b[2J", "\n", "\u202e"])), COUNT),
    "fewer class names": (changed(class_names=np.array(["a"])), "'class_names' of raw/own.npz must name 3 classes"),
    "class names of numbers": (changed(class_names=np.arange(3)), "'class_names' of raw/own.npz must be strings"),
    "class names of objects": (
        changed(class_names=np.array(["a"], object)),
        "'class_names' of raw/own.npz holds Python",
    ),
    "no file": (lambda file: file.unlink(), "raw/own.npz is missing. Put it there, or name the folder"),
    "a folder": (lambda file: (file.unlink(), file.mkdir()), "raw/own.npz is no file."),
    "a pipe": (lambda file: (file.unlink(), os.mkfifo(file)), "raw/own.npz is no file."),
    "an endless device": (lambda file: (file.unlink(), file.symlink_to("/dev/zero")), "raw/own.npz is no file."),
    "a link that leads nowhere": (lambda file: (file.unlink(), file.symlink_to("absent")), "raw/own.npz is missing."),
    "a link in a circle": (lambda file: (file.unlink(), file.symlink_to(file)), "raw/own.npz is missing."),
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
        file.write_bytes(patched(content, position, bytes([content[position] ^ 1 << int(position) % 8])))
        try:
            found = load(file)
        except UserError as error:
            refused += str(error).isprintable()
        else:
            np.testing.assert_array_equal(found.images[..., 0], IMAGES)
            np.testing.assert_array_equal(found.labels, LABELS)
    assert refused > 100


def test_the_root_may_be_damaged_too(params, folder, prepared):
    assert "The 'root' parameter of prepare must be an existing folder" in prepared("folder", root="raw/absent")
    assert "The 'root' parameter of prepare must be an existing folder" in prepared("folder", root=f"raw/{TARGET}")
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", "\x1b[2J")
    (folder / "own/ant/text.png").write_bytes(encoded("PNG", pnginfo=text))
    assert prepared("folder") == WHOLE + 1
