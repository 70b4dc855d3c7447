"""Tests a ledger that was edited, cut or torn.

Each command says in a sentence what is wrong, and none goes on.
"""

import json
import math

import pytest
from ledgers import DELTA, release

from pipelines.privacy.ledger import Ledger, LedgerError
from pipelines.privacy.ledger.chain import START, canonical, digest


@pytest.fixture
def ledger(tmp_path):
    """Makes a ledger of three releases."""
    ledger = Ledger(tmp_path / "digits" / "c0.jsonl", delta=DELTA)
    for seed in range(3):
        ledger.open(release(seed=seed))
    return ledger


def said(ledger) -> str:
    """Returns the one sentence of every use of the ledger."""
    uses = [
        ledger.entries,
        ledger.total_epsilon,
        ledger.closed,
        ledger.summary,
        lambda: ledger.knows("x"),
        lambda: ledger.open(release(seed=9)),
        lambda: ledger.close(release(seed=1).fingerprint),
    ]
    found = set()
    for use in uses:
        with pytest.raises(LedgerError) as error:
            use()
        found.add(str(error.value))
    (sentence,) = found
    return sentence


def edited(lines):
    entry = json.loads(lines[1])
    entry["cost"]["mu"] /= 2
    return [lines[0], canonical(entry).encode() + b"\n", lines[2]]


BROKEN = "the chain is broken; a line was edited or deleted."
TAMPERED = {
    "edited": (edited, f"line 2: {BROKEN}"),
    "deleted in the middle": (lambda lines: [lines[0], lines[2]], f"line 2: {BROKEN}"),
    "deleted at the start": (lambda lines: lines[1:], f"line 1: {BROKEN}"),
    "cut off": (lambda lines: lines[:1], "3 lines were written, 1 are there; the end was cut off."),
    "the last cut off": (
        lambda lines: lines[:2],
        "3 lines were written, 2 are there; the end was cut off.",
    ),
    "swapped": (lambda lines: [lines[0], lines[2], lines[1]], f"line 2: {BROKEN}"),
    "emptied": (lambda lines: [], "3 lines were written, 0 are there; the end was cut off."),
    "no json": (
        lambda lines: [lines[0], b"{\n", lines[2]],
        "line 2: not JSON; the line was edited.",
    ),
    "no text": (
        lambda lines: [lines[0][:30] + b"\xff" + lines[0][31:], *lines[1:]],
        "line 1: not UTF-8; the line",
    ),
    "a list": (lambda lines: [b"[1]\n", *lines], "line 1: no mapping; the line was edited."),
    "a number": (lambda lines: [*lines, b"5\n"], "line 4: no mapping; the line was edited."),
    "a word": (lambda lines: [*lines, b'"open"\n'], "line 4: no mapping; the line was edited."),
    "nested too deep": (
        lambda lines: [b"[" * 100_000 + b"\n", *lines],
        "line 1: not JSON; the line was edited.",
    ),
    "an empty line": (lambda lines: [*lines, b"\n"], "line 4: not JSON; the line was edited."),
    "zeros of a power cut": (
        lambda lines: [*lines, b"\0" * 50 + b"\n"],
        "line 4: not JSON; the line was edited.",
    ),
    "without keys": (lambda lines: [*lines, b"{}\n"], f"line 4: {BROKEN}"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_tampering_shows(ledger, how):
    change, words = TAMPERED[how]
    ledger.path.write_bytes(b"".join(change(ledger.path.read_bytes().splitlines(keepends=True))))
    assert words in said(ledger)


def chained(ledger, change) -> None:
    """Changes the last line, with hashes that are right again in line and head."""
    lines = ledger.path.read_text().splitlines()
    entry = json.loads(lines[-1])
    del entry["hash"]
    change(entry)
    ledger.path.write_text(
        "\n".join([*lines[:-1], canonical({**entry, "hash": digest(entry)})]) + "\n"
    )
    ledger.chain.head.write_text(json.dumps({"lines": len(lines), "hash": digest(entry)}))


FOREIGN = {
    "no event": (
        lambda entry: entry.pop("event"),
        "'event' must be one of open, close, and is None",
    ),
    "a list as event": (
        lambda entry: entry.update(event=[]),
        "'event' must be one of open, close, and is []",
    ),
    "no fingerprint": (
        lambda entry: entry.pop("fingerprint"),
        "'fingerprint' is absent or of another kind",
    ),
    "no cost": (lambda entry: entry.pop("cost"), "'cost' is absent or of another kind"),
    "no version": (lambda entry: entry.pop("version"), "'version' is absent or of another kind"),
    "no parameters": (
        lambda entry: entry.pop("parameters"),
        "'parameters' is absent or of another kind",
    ),
    "no hash of the records": (
        lambda entry: entry.pop("data"),
        "'data' is absent or of another kind",
    ),
    "no statement": (
        lambda entry: entry.update(statement=None),
        "'statement' is absent or of another kind",
    ),
    "an unknown cost": (
        lambda entry: entry.update(cost={"kind": "free"}),
        "'kind' of its cost must be one of ",
    ),
    "no mu": (
        lambda entry: entry.update(cost={"kind": "gaussian"}),
        "'mu' of its cost is absent or of another kind",
    ),
    "mu is no number": (
        lambda entry: entry["cost"].update(mu=math.nan),
        "'mu' of its cost is absent or of another",
    ),
    "mu is true": (
        lambda entry: entry["cost"].update(mu=True),
        "'mu' of its cost is absent or of another kind",
    ),
    "a torn schedule": (
        lambda entry: entry.update(cost={"kind": "sampled_gaussian", "schedule": [[1.0, 0.1]]}),
        "'schedule' of its cost is absent or of another kind",
    ),
    "delta of one": (
        lambda entry: entry["statement"].update(delta=1),
        "'delta' of its statement must be in (0, 1)",
    ),
    "epsilon in words": (
        lambda entry: entry["statement"].update(epsilon="1"),
        "'epsilon' of its statement must be a",
    ),
}


@pytest.mark.parametrize("how", FOREIGN)
def test_a_line_that_nobody_can_add_up_is_named(ledger, how):
    change, words = FOREIGN[how]
    chained(ledger, change)
    assert f"c0.jsonl, line 3: {words}" in said(ledger)


HEADS = {
    "empty": (b"", "is empty, as a power cut may leave a file"),
    "blank": (b"\n", "is empty, as a power cut may leave a file"),
    "torn": (b'{"lines": 3, "ha', "is not JSON"),
    "no text": (b"\xff\xfe", "is not JSON"),
    "nested too deep": (b"[" * 100_000, "is not JSON"),
    "a list": (b"[]", "holds no mapping"),
    "no lines": (b"{}", "must have a number of 'lines', and has None"),
    "lines in words": (
        b'{"lines": "3", "hash": "x"}',
        "must have a number of 'lines', and has '3'",
    ),
    "negative lines": (b'{"lines": -1, "hash": "x"}', "must have a number of 'lines', and has -1"),
    "lines that are true": (
        b'{"lines": true, "hash": "x"}',
        "must have a number of 'lines', and has True",
    ),
    "a part of a line": (
        b'{"lines": 2.5, "hash": "x"}',
        "must have a number of 'lines', and has 2.5",
    ),
    "no hash": (b'{"lines": 3}', "must have the 'hash' of the last line, and has None"),
    "a hash that is none": (
        b'{"lines": 3, "hash": "x"}',
        "must have the 'hash' of the last line, and has 'x'",
    ),
}


@pytest.mark.parametrize("how", HEADS)
def test_a_damaged_head_is_named_and_its_owner_can_vouch_for_the_lines(ledger, how):
    content, words = HEADS[how]
    whole = ledger.chain.head.read_text()
    ledger.chain.head.write_bytes(content)
    told = said(ledger)
    assert (
        f"c0.head {words}" in told
        and "whether lines were cut off at the end of c0.jsonl cannot be told" in told
    )
    ledger.chain.head.write_text(told.partition("write this into c0.head: ")[2])
    assert ledger.chain.head.read_text() == whole.strip()
    assert ledger.open(release(seed=9)) == "new"


def test_a_head_of_other_lines_shows(ledger):
    ledger.chain.head.write_text(json.dumps({"lines": 3, "hash": START}))
    assert "line 3 is not the one that was written; the head has another." in said(ledger)


def test_a_deleted_head_shows(ledger):
    ledger.chain.head.unlink()
    assert (
        "c0.head is gone, but its 3 lines are not. Bring both files back from a backup that"
        in said(ledger)
    )


def test_a_deleted_file_shows(ledger):
    ledger.path.unlink()
    assert (
        "is gone, but its head is not: lines were deleted. Bring both files back from a backup that"
        in said(ledger)
    )
