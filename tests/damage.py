"""Damages inputs and checks how a command ends on them."""

import os
from pathlib import Path

import pytest

from pipelines.errors import told_in_a_sentence


def ended(action) -> str | None:
    """Returns what a command that does this ends with: None, or lines that a terminal may show."""
    try:
        with told_in_a_sentence():
            action()
    except SystemExit as error:
        assert isinstance(error.code, str) and error.code.startswith("Error: ")
        for line in error.code.splitlines():
            assert line.isprintable() and line.rstrip(")").endswith((".", ".yaml")), line
        return error.code
    return None


def patched(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


def closed(name: str):
    """Takes all permissions from a file or folder below the folder that it is called with."""

    def damage(root: Path) -> None:
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        (root / name).chmod(0)

    return damage
