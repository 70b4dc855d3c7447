"""Tests a client's lasting key: made once, for its user alone, and printed without its secret."""

import stat

import pytest

from pipelines.config import federation
from pipelines.config.values import NAME
from pipelines.privacy.secure_sums import __main__ as command
from pipelines.privacy.secure_sums import signing_key, terms
from pipelines.privacy.secure_sums.refusals import Refusal


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDLENS_LEDGERS", raising=False)


def test_a_key_is_made_once_and_is_its_user_s_alone():
    first = signing_key.made("c0")
    assert signing_key.made("c0").public == signing_key.read("c0").public == first.public
    assert signing_key.made("c1").public != first.public
    path = signing_key.path_of("c0")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_a_kill_left_is_no_key_and_is_made_anew():
    path = signing_key.path_of("c0")
    path.parent.mkdir(parents=True)
    path.with_suffix(".tmp").write_bytes(b"half a key")
    key = signing_key.made("c0")
    assert key.public == signing_key.read("c0").public
    assert not path.with_suffix(".tmp").exists()


@pytest.mark.parametrize("content", [b"", b"no key", b"\xff" * 100])
def test_a_file_that_holds_no_key_is_refused(content):
    signing_key.made("c0")
    signing_key.path_of("c0").write_bytes(content)
    with pytest.raises(Refusal, match="holds no private key of Ed25519"):
        signing_key.made("c0")


def test_a_key_that_is_missing_is_refused_with_what_makes_it():
    with pytest.raises(Refusal, match=r"python -m pipelines.privacy.secure_sums c0` makes it"):
        signing_key.read("c0")


def test_the_command_prints_the_line_for_the_roster(capsys):
    command.main(["clinic_a"])
    line = capsys.readouterr().out
    assert line == f'clinic_a: "{signing_key.read("clinic_a").public.hex()}"\n'
    assert federation.SIGNING_KEY.fullmatch(line.split('"')[1])
    secret = signing_key.path_of("clinic_a").read_text().splitlines()[1]
    assert secret not in line


def test_the_command_refuses_in_a_sentence(capsys):
    for name in ("../c0", "", "c 0"):
        with pytest.raises(SystemExit):
            command.main([name])
    signing_key.path_of("c0").parent.mkdir(parents=True)
    signing_key.path_of("c0").write_bytes(b"")
    with pytest.raises(SystemExit, match=r"Error: .* holds no private key"):
        command.main(["c0"])


def test_parameters_and_protocol_agree_on_names_and_numbers():
    assert command.CLIENT.pattern == NAME.pattern
    assert federation.FEWEST == terms.FEWEST
