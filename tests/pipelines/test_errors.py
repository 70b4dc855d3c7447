"""Tests how a command ends: one sentence, and no character that a terminal obeys."""

import pytest

from pipelines.errors import UserError, told_in_a_sentence


@pytest.mark.parametrize(
    "error, said",
    [
        (UserError("one\ntwo"), "Error: one\ntwo"),
        (UserError("raw/\x1b[2Jx\r.png"), r"Error: raw/\x1b[2Jx\r.png"),
        (UserError("raw/\udcff.png"), r"Error: raw/\udcff.png"),
        (PermissionError(13, "Permission denied", "a\x1bb"), r"Error: Permission denied: a\x1bb."),
        (
            MemoryError("Unable to allocate 9 TiB"),
            "Error: There is not enough memory (Unable to allocate 9 TiB).",
        ),
    ],
)
def test_what_ends_a_command_is_told_in_printable_characters(error, said):
    with pytest.raises(SystemExit) as ended, told_in_a_sentence():
        raise error
    assert ended.value.code == said
