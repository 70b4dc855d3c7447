"""Finds private keys and other secrets in files: by content, by name, and inside archives."""

import contextlib
import fnmatch
import io
import itertools
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

# The first line of a key of any kind: PKCS8, ENCRYPTED, RSA, EC, DSA, OPENSSH, PGP, SSH2, and
# PuTTY's. It has no line break in it, so JSON such as NVFlare's cert.json has it unchanged.
HEADER = re.compile(rb"----[- ]BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|PuTTY-User-Key-File-\d")
# bytes: no header is longer
LONGEST = 128
# bytes that are read at once
PIECE = 1 << 20
NAMES = (
    *("*.key", "*.p12", "*.pfx", "*.jks", "*.ppk", "*.secret", "cert.json"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"),
    *(".env", ".env.*", "*.env"),
    *(".netrc", ".pgpass", ".pypirc", ".git-credentials", "config.local"),
)
NO_SECRET = (".env.example", ".env.sample", ".env.template")
# bytes that are unpacked of one file
MOST = 1 << 28
# archives in archives
DEEPEST = 3

KEY = "holds a private key"
NAMED = "has the name of a private key or of a file of secrets"
LOCKED = "is locked with a password, so nobody sees whether it is a private key"
LARGE = f"unpacks to more than {MOST >> 20} MiB, which is not searched for private keys"
UNREADABLE = "cannot be read, so nobody sees whether it is a private key"

DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError),
    *(NotImplementedError, RuntimeError, ValueError),
)


def search_file(path: Path, name: str) -> Iterator[tuple[str, str]]:
    """Searches a file on disk, and every member of it if it is a zip or tar archive.

    A file of any size is read in pieces, and at most MOST bytes of it are unpacked.

    Args:
        path: Where the file lies.
        name: The name under which findings report it.

    Yields:
        The place and the finding of each private key, and of each place that cannot be searched.
    """
    try:
        with path.open("rb") as stream:
            yield from _Search().search(stream, name, name)
    except OSError:
        yield name, UNREADABLE


def search_content(content: bytes, name: str) -> Iterator[tuple[str, str]]:
    """Searches the content of a file, like `search_file`."""
    yield from _Search().search(io.BytesIO(content), name, name)


@dataclass(frozen=True)
class _Member:
    """A file in an archive.

    Attributes:
        name: Its name there.
        unpacked: Its bytes, or 0 where they lie in the archive as they are.
        locked: It needs a password.
        open: Opens it for reading.
    """

    name: str
    unpacked: int
    locked: bool
    open: Callable[[], BinaryIO]


class _Search:
    """Searches one file. `left` counts down the bytes that may still be unpacked."""

    def __init__(self):
        self.left = MOST

    def search(
        self, stream: BinaryIO, name: str, where: str, depth: int = 0
    ) -> Iterator[tuple[str, str]]:
        """Yields the findings in a stream, and in its members if it is an archive.

        Args:
            stream: The bytes, which can be read again from their start.
            name: The file's own name.
            where: The archives around it and its name, for the findings.
            depth: The number of archives around it.
        """
        if _has_header(stream):
            yield where, KEY
        elif _is_named(name):
            yield where, NAMED
        for open_archive in (_zip, _tar) if depth < DEEPEST else ():
            stream.seek(0)
            with contextlib.ExitStack() as closing:
                try:
                    members = open_archive(stream, closing)
                except DAMAGED:
                    # no archive of this kind
                    continue
                yield from self._search_archive(members, where, depth)

    def _search_archive(
        self, members: Iterator[_Member], where: str, depth: int
    ) -> Iterator[tuple[str, str]]:
        """Yields the findings in the members of an archive."""
        try:
            for member in members:
                self.left -= member.unpacked
                if self.left < 0:
                    yield where, LARGE
                    return
                inside = f"{where}: {member.name}"
                if member.locked:
                    yield inside, NAMED if _is_named(member.name) else LOCKED
                else:
                    with member.open() as stream:
                        yield from self.search(stream, member.name, inside, depth + 1)
        except DAMAGED:
            yield where, UNREADABLE


def _zip(stream: BinaryIO, closing: contextlib.ExitStack) -> Iterator[_Member]:
    """Opens a zip archive, which `closing` closes, and returns its files."""
    archive = closing.enter_context(zipfile.ZipFile(stream))
    files = itertools.filterfalse(zipfile.ZipInfo.is_dir, archive.infolist())
    return map(partial(_zip_member, archive), files)


def _zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Member:
    return _Member(
        name=member.filename,
        unpacked=0 if member.compress_type == zipfile.ZIP_STORED else member.file_size,
        locked=bool(member.flag_bits & 1),
        open=partial(archive.open, member),
    )


def _tar(stream: BinaryIO, closing: contextlib.ExitStack) -> Iterator[_Member]:
    """Opens a tar archive, which `closing` closes, and returns its files."""
    archive = closing.enter_context(tarfile.TarFile.open(fileobj=stream))
    return (
        _Member(
            name=member.name,
            unpacked=member.size,
            locked=False,
            open=partial(archive.extractfile, member),
        )
        for member in archive
        if member.isfile()
    )


def _has_header(stream: BinaryIO) -> bool:
    """Returns whether the first line of a private key stands anywhere in a stream."""
    end = b""
    while piece := stream.read(PIECE):
        # without zeros, UTF-16, which some Windows programs write, reads like ASCII
        text = end + piece.replace(b"\0", b"")
        if HEADER.search(text):
            return True
        end = text[-LONGEST:]
    return False


def _is_named(name: str) -> bool:
    """Returns whether a file has the name of a private key or of a file of secrets.

    >>> _is_named("kits/c0/client.key"), _is_named("notes.md"), _is_named(".env.example")
    (True, False, False)
    """
    base_name = PurePosixPath(name).name.lower()
    if base_name in NO_SECRET:
        return False
    return any(fnmatch.fnmatchcase(base_name, pattern) for pattern in NAMES)
