"""Whatever lies in a folder of images, `prepare` ends well or in sentences, at once, with nothing half-written."""

import os
import socket
import struct
import zlib

import numpy as np
import pytest
from damage import closed, patched
from image_files import chunk, encoded, jpeg_of, noise, png, tiff_of
from PIL import Image, PngImagePlugin

from pipelines.datasets import picture_file
from pipelines.errors import UserError

CLASSES = ("Bee", "ant", "cat")
EACH = 5
WHOLE = len(CLASSES) * EACH  # images of the undamaged folder
TARGET = "own/ant/2.png"
FORMATS = {
    "PNG": "png",
    "JPEG": "jpg",
    "BMP": "bmp",
    "TIFF": "tif",
    "WEBP": "webp",
    "GIF": "gif",
    "PPM": "pgm",
}


@pytest.fixture
def folder(raw):
    """Makes raw/own with five images in each of three classes."""
    for label, name in enumerate(CLASSES):
        (raw / "own" / name).mkdir(parents=True)
        for number in range(EACH):
            noise(label * EACH + number).save(raw / f"own/{name}/{number}.png")
    return raw


def put(name: str, content: bytes):
    def damage(raw):
        (raw / name).write_bytes(content)

    return damage


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


# what is done to the folder: a part of the sentence, or the number of records
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
    "a git lfs pointer": (
        put(TARGET, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
        NONE,
    ),
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
    "a bmp of 4 Gpx": (
        put(TARGET, patched(encoded("BMP"), 18, struct.pack("<ii", 65_535, 65_535))),
        LARGE,
    ),
    "a bmp of negative width": (
        put(TARGET, patched(encoded("BMP"), 18, struct.pack("<i", -9))),
        BAD,
    ),
    "a ppm of 10 Gpx": (put(TARGET, b"P5 99999 99999 255\n" + bytes(99)), LARGE),
    "a ppm of endless digits": (put(TARGET, b"P5 " + b"9" * 5000 + b" 1 255\n"), BAD),
    "a jpeg of 4 Gpx": (put(TARGET, jpeg_of(65_000, 65_000)), LARGE),
    "a tiff of 3 Gpx": (put(TARGET, tiff_of(60_000)), LARGE),
    "floats": (
        put("own/ant/f.tif", encoded("TIFF", Image.fromarray(np.ones((4, 4), np.float32)))),
        "8 or 16 bits",
    ),
    "32-bit ints": (
        put("own/ant/i.tif", encoded("TIFF", Image.fromarray(np.ones((4, 4), np.int32)))),
        "8 or 16 bits",
    ),
    "a format that is not read": (
        put("own/ant/x.heic", b"anything"),
        "only PNG, JPEG, BMP, TIFF, WEBP, GIF, PPM are",
    ),
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
    "a link to a folder": (
        linked("own/dog", "cat"),
        "own/dog is a link, behind which DVC sees no change",
    ),
    "a link to a folder below": (linked("own/cat/dog", "../ant"), "own/cat/dog is a link"),
    "a link to the folder above": (linked("own/cat/dog", ".."), "own/cat/dog is a link"),
    "a link to a file": (linked("own/ant/x.png", "2.png"), WHOLE + 1),
    "a link to a file elsewhere": (
        lambda raw: (
            (raw.parent / "x").write_bytes(encoded("PNG")),
            (raw / "own/ant/x.png").symlink_to("../../../x"),
        ),
        WHOLE + 1,
    ),
    "a link that leads nowhere": (
        linked("own/ant/x.png", "absent"),
        "x.png is no readable image (No such file",
    ),
    "a link in a circle": (
        linked("own/ant/x.png", "x.png"),
        "x.png is no readable image (Too many levels",
    ),
    "a link to an endless device": (linked("own/ant/x.png", "/dev/zero"), WHOLE),
    "a link to a private file": (linked("own/ant/x.png", "/etc/passwd"), NONE),
    "a pipe": (piped("own/ant/x.png"), WHOLE),
    "a pipe beside the classes": (piped("own/x.png"), WHOLE),
    "a socket": (socket_at, WHOLE),
    "a device": (device_at, WHOLE),
    "no permission for a file": (closed(TARGET), "2.png is no readable image (Permission denied)"),
    "no permission for a class": (
        closed("own/ant"),
        "raw/own/ant cannot be read: Permission denied.",
    ),
    "a line break in a name": (renamed(TARGET, b"own/ant/a\nb.png"), WHOLE),
    "a line break in a bad name": (
        put("own/ant/a\nError: all is well.png", b""),
        r"a\nError: all is well.png is no",
    ),
    "a terminal's command in a bad name": (
        put("own/ant/\x1b]0;x\x07\x1b[2J.png", b""),
        r"\x1b]0;x\x07\x1b[2J.png is no",
    ),
    "a terminal's command in another file": (put("own/ant/\x1b[31m.txt", b""), WHOLE),
    "a terminal's command in a class": (renamed("own/cat", b"own/cat\x1b[31m\n"), WHOLE),
    "a name from right to left": (
        put("own/ant/\u202egnp.exe.png", b""),
        r"\u202egnp.exe.png is no",
    ),
    "a name that is not utf-8": (renamed(TARGET, b"own/ant/\xff\xfe.png"), WHOLE),
    "a bad name that is not utf-8": (
        lambda raw: open(b"raw/own/ant/\xff.png", "wb").close(),
        r"\udcff.png is no",
    ),
    "a class that is not utf-8": (renamed("own/cat", b"own/\xff"), WHOLE),
    "two ways to write one letter": (
        lambda raw: [
            put(f"own/ant/{name}.png", encoded("PNG"))(raw) for name in ("\u00e9", "e\u0301")
        ],
        WHOLE + 2,
    ),
    "the longest name": (put(f"own/ant/{'x' * 251}.png", encoded("PNG")), WHOLE + 1),
    "quotes and blanks": (put("own/ant/ '\"$(x) %s {0}.png", encoded("PNG")), WHOLE + 1),
    "a dash first": (put("own/ant/-rf.png", encoded("PNG")), WHOLE + 1),
    "no folder at all": (
        lambda raw: (raw / "own").rename(raw / "away"),
        "raw/own is missing. Put a folder per class",
    ),
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
    "an empty class too many": (
        lambda raw: (raw / "own/dog").mkdir(),
        "The 'classes' parameter of profiles.own",
    ),
    "an animation": (put("own/ant/x.png", encoded("PNG", **APNG)), WHOLE + 1),
    "an animated gif": (put("own/ant/x.gif", encoded("GIF", **APNG)), WHOLE + 1),
    "several pages": (put("own/ant/x.tif", encoded("TIFF", **APNG)), WHOLE + 1),
    "one pixel": (put("own/ant/x.png", encoded("PNG", noise(1, side=1))), WHOLE + 1),
    "a line": (put("own/ant/x.png", encoded("PNG", noise(1).resize((9000, 1)))), WHOLE + 1),
    "a broken exif": (
        put("own/ant/x.jpg", encoded("JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff")),
        None,
    ),
    "a broken colour profile": (
        put("own/ant/x.png", encoded("PNG", icc_profile=b"x" * 99)),
        WHOLE + 1,
    ),
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
        file.write_bytes(
            patched(content, position, bytes([content[position] ^ 1 << int(position) % 8]))
        )
        try:
            assert picture_file.picture(file, [8, 8, 3]).shape == (8, 8, 3)
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


def test_the_root_may_be_damaged_too(params, folder, prepared):
    assert "The 'root' parameter of prepare must be an existing folder" in prepared(
        "folder", root="raw/absent"
    )
    assert "The 'root' parameter of prepare must be an existing folder" in prepared(
        "folder", root=f"raw/{TARGET}"
    )
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", "\x1b[2J")
    (folder / "own/ant/text.png").write_bytes(encoded("PNG", pnginfo=text))
    assert prepared("folder") == WHOLE + 1
