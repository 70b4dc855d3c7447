"""Tests that another member's text stays text in this member's log."""

import logging

import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from pipelines.federation.network.flare import hardening, origins
from pipelines.federation.network.flare.common_hardening import shown

FORGED = "x\n2026-01-01 - server - ERROR - c0 was lost\r\x1b[2J\u2028\x00"


def test_no_text_begins_a_line_or_commands_a_terminal():
    first, *others = shown(FORGED).split("\n")
    assert first == "x" and all(line.startswith("    ") for line in others)
    assert all(character.isprintable() for line in others for character in line)
    assert "\\x1b[2J" in others[0]


def test_usual_text_is_as_it_was():
    for text in ("c0: ready", "Trainingsdaten für c0", "a\tb", ""):
        assert shown(text) == text


@pytest.mark.parametrize("change", [hardening.narrow, origins.guard])
def test_the_processes_of_server_and_clients_log_so(change, monkeypatch, caplog):
    monkeypatch.setattr(hardening, "keep_only", lambda *lists: None)
    change(monkeypatch.setattr)
    logging.getLogger("x").error("no callback for request %s", FORGED)
    assert caplog.records[-1].getMessage().count("\n") == 1
    assert "\x1b" not in caplog.records[-1].getMessage()
