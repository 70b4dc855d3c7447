"""Tests that private keys are found whatever holds them."""

import json
import zipfile

import pytest
from key_files import pem, tarred, zipped

from pipelines.guard import keys

KINDS = ["", "RSA ", "EC ", "DSA ", "ENCRYPTED ", "OPENSSH "]


@pytest.fixture
def found(tmp_path):
    """Returns (content, name) -> what is found in such a file, on disk and from its content alone."""

    def search(content: bytes, name: str = "notes.txt") -> list[tuple[str, str]]:
        (tmp_path / "file").write_bytes(content)
        on_disk = list(keys.search_file(tmp_path / "file", name))
        assert list(keys.search_content(content, name)) == on_disk
        return on_disk

    return search


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_of_any_kind_is_found_under_any_name(found, kind):
    assert found(pem(kind).encode()) == [("notes.txt", keys.KEY)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_inside_json_is_found(found, kind):
    """NVFlare's state/cert.json has the authority's key like this: in one line, its line breaks
    escaped.
    """
    state = json.dumps({"root_cert": "x", "root_pri_key": pem(kind)})
    assert "\n" not in state
    assert found(state.encode(), "state.txt") == [("state.txt", keys.KEY)]
    assert found(json.dumps({"nested": state}).encode(), "state.txt") == [("state.txt", keys.KEY)]


def test_a_key_in_utf_16_is_found(found):
    assert found(pem().encode("utf-16")) == [("notes.txt", keys.KEY)]


@pytest.mark.parametrize(
    "header", ["-----BEGIN PGP {} BLOCK-----", "---- BEGIN SSH2 ENCRYPTED {} ----"]
)
def test_other_programs_keys_are_found(found, header):
    assert found(header.format("PRIVATE KEY").encode()) == [("notes.txt", keys.KEY)]
    assert found(b"PuTTY-User-Key-File-" + b"3: ssh-rsa") == [("notes.txt", keys.KEY)]


@pytest.mark.parametrize(
    "place", [0, keys.PIECE - 40, keys.PIECE - 1, keys.PIECE, 3 * keys.PIECE + 17]
)
def test_a_large_file_is_read_in_pieces_that_cut_no_key(found, place):
    content = b"x" * place + pem("OPENSSH ").encode() + b"y" * keys.PIECE
    assert found(content) == [("notes.txt", keys.KEY)]


@pytest.mark.parametrize(
    "name", ["c0/startup/client.key", "state/cert.json", "ID_RSA", ".env", "c0.env", "c0.secret"]
)
def test_a_key_is_found_by_its_name(found, name):
    """A binary key has no header."""
    assert found(b"\x30\x82", name) == [(name, keys.NAMED)]


@pytest.mark.parametrize(
    "name", ["rootCA.pem", "client.crt", ".env.example", "monkey.py", "keys.py", "card.json"]
)
def test_a_certificate_is_no_key(found, name):
    public = pem().replace("PRIVATE KEY", "CERTIFICATE") + pem().replace("PRIVATE", "PUBLIC")
    assert found(public.encode(), name) == []


@pytest.mark.parametrize(
    "pack", [zipped, tarred, lambda content: tarred(content, "w"), lambda c: zipped(c, 0)]
)
def test_a_key_in_an_archive_is_named_with_its_place(found, pack):
    packed = pack(
        {"c0/readme.txt": b"x", "c0/a.txt": pem("RSA ").encode(), "c0/startup/client.key": b"\x30"}
    )
    places = [place for place in found(packed, "c0.bin") if place[0] != "c0.bin"]
    assert places == [("c0.bin: c0/a.txt", keys.KEY), ("c0.bin: c0/startup/client.key", keys.NAMED)]


def test_an_archive_in_an_archive_is_searched(found):
    inner = tarred({"client.txt": pem().encode()})
    assert found(zipped({"kits/c0.tgz": inner}), "kits.zip") == [
        ("kits.zip: kits/c0.tgz: client.txt", keys.KEY)
    ]


def test_an_archive_that_grows_without_end_is_named_and_not_unpacked(found, monkeypatch):
    monkeypatch.setattr(keys, "MOST", 1 << 16)
    bomb = {"zeros": bytes(1 << 17)}
    for pack in (zipped, tarred):
        assert found(pack(bomb), "bomb") == [("bomb", keys.LARGE)]
    many = zipped({f"{number}.zip": zipped({"zeros": bytes(1 << 15)}) for number in range(9)})
    assert {what for _, what in found(many, "bomb")} == {keys.LARGE}
    assert found(zipped({"zeros": bytes(1 << 17)}, zipfile.ZIP_STORED), "large.npz") == []


def test_a_member_under_a_password_is_named(found):
    packed = bytearray(zipped({"c0/notes.txt": b"x", "c0/client.key": b"x"}))
    at = -1
    while (at := packed.find(b"PK\x01\x02", at + 1)) >= 0:
        packed[at + 8] |= 1  # the flag that says so
    assert found(bytes(packed), "c0.zip") == [
        ("c0.zip: c0/notes.txt", keys.LOCKED),
        ("c0.zip: c0/client.key", keys.NAMED),
    ]


def test_a_damaged_archive_is_named(found):
    whole = bytearray(zipped({"a.txt": bytes(range(256)) * 9}))
    whole[60:70] = b"0123456789"
    assert found(bytes(whole), "c0.zip") == [("c0.zip", keys.UNREADABLE)]
    assert found(tarred({"a": b"x" * 5000, "b": b"y" * 5000}, "w")[:7000], "c0.tar") == [
        ("c0.tar", keys.UNREADABLE)
    ]


@pytest.mark.parametrize(
    "content", [b"", b"x", b"PK\x05\x06" + bytes(18), b"\x1f\x8b rest", bytes(2048)]
)
def test_what_is_no_archive_holds_nothing(found, content):
    assert found(content, "file.bin") == []


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    assert list(keys.search_file(tmp_path / "gone", "gone")) == [("gone", keys.UNREADABLE)]
