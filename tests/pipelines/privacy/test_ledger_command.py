"""Tests `python -m pipelines.privacy.ledger`: totals with their reasons, and a sentence for each
mistake.
"""

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from ledgers import DELTA, release
from project import ENV, ROOT

from pipelines.privacy import accounting
from pipelines.privacy.ledger import Ledger
from pipelines.privacy.ledger.__main__ import main
from pipelines.privacy.ledger.wording import rounded_up


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Returns the folder of the project's ledgers, of which there are none yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDLENS_LEDGERS", raising=False)
    return tmp_path / "ledgers"


def entered(folder, *releases, client="c0"):
    ledger = Ledger(folder / f"digits/{client}.jsonl", delta=DELTA)
    for one in releases:
        ledger.open(one)
        ledger.close(one.fingerprint)
    return ledger


@pytest.fixture
def said(capsys):
    def said(*arguments) -> list[str]:
        main(list(arguments))
        return capsys.readouterr().out.splitlines()

    return said


@pytest.fixture
def refused(capsys):
    """Returns the one sentence with which the command ends."""

    def refused(*arguments) -> str:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        assert isinstance(ended.value.code, str) and "\n" not in ended.value.code
        return ended.value.code

    return refused


def epsilon(*releases, delta=DELTA) -> str:
    return (
        f"{rounded_up(accounting.total_epsilon(costs=[one.cost for one in releases], delta=delta))}"
    )


def test_show_has_each_release_with_its_delta_and_a_total_of_each_mechanism(folder, said):
    made = [release(seed=1), release(3.0, mechanism="datalens"), release(2.0, seed=2)]
    ledger = entered(folder, *made)
    ledger.open(release(seed=3))
    names = [one.fingerprint[:12] for one in (*made, release(seed=3))]
    assert said("show") == [
        f"digits/c0: total epsilon {epsilon(*made, release(seed=3))} at delta 1e-05, per record",
        f"  {names[0]}  dp_moments  epsilon 1        delta 1e-05    made",
        f"  {names[1]}  datalens    epsilon 3        delta 1e-05    made",
        f"  {names[2]}  dp_moments  epsilon 2        delta 1e-05    made",
        f"  {names[3]}  dp_moments  epsilon 1        delta 1e-05    OPEN: died, or still running",
        f"  3 of dp_moments together: epsilon {epsilon(made[0], made[2], release(seed=3))}",
    ]


def test_show_takes_the_smallest_delta_that_a_client_states_or_the_one_that_is_asked_for(
    folder, said
):
    two = [release(delta=1e-3), release(seed=1, delta=1e-6)]
    entered(folder, *two)
    total = "digits/c0: total epsilon"
    assert (
        said("show")[0]
        == f"{total} {epsilon(*two, delta=1e-6)} at delta 1e-06 (its releases state 0.001, too), per record"
    )
    asked = f"{total} {epsilon(*two, delta=0.01)} at delta 0.01 (its releases state 1e-06, 0.001, too), per record"
    assert said("show", "--delta", "0.01")[0] == asked


def test_each_client_has_a_delta_of_its_own(folder, said):
    entered(folder, release(delta=1e-4))
    entered(folder, release(delta=1e-7), client="c1")
    totals = [line.partition(" at ")[2] for line in said("show") if "total" in line]
    assert totals == ["delta 0.0001, per record", "delta 1e-07, per record"]
    assert [line.rpartition(", at ")[2] for line in said("plan")[1:]] == [
        "delta 0.0001",
        "delta 1e-07",
    ]


def test_show_says_once_whom_releases_trust(folder, said):
    sentence = "This bound holds while at most 2 of the 5 clients put what they know together."
    joint = []
    for seed in (1, 2):
        alone = release(seed=seed)
        joint.append(replace(alone, statement={**alone.statement, "trust": sentence}))
    entered(folder, *joint, release(seed=3))
    (told,) = [line for line in said("show") if sentence in line]
    assert told == f"  {joint[0].fingerprint[:12]}, {joint[1].fingerprint[:12]}: {sentence}"


def test_show_names_the_releases_without_a_guarantee(folder, said):
    void = [release(mechanism="gan", cost={"kind": "none"}, seed=seed) for seed in (1, 2)]
    entered(folder, release(), *void)
    lines = said("show")
    assert (
        "total epsilon infinity (a release without a guarantee is among them) at delta" in lines[0]
    )
    names = ", ".join(f"{one.fingerprint[:12]} (gan)" for one in void)
    assert (
        lines[-1] == f"  Without a guarantee: {names}. No epsilon holds for all releases together."
    )
    assert "nan" not in "".join(lines)


@pytest.mark.parametrize("count", [6, 7, 8, 12])
def test_show_names_the_release_that_passed_thirty(folder, said, count):
    made = [release(10.0, seed=seed) for seed in range(count)]
    entered(folder, *made)
    lines = said("show")
    assert "total epsilon more than 30 (beyond which nothing is claimed) at delta 1e-05" in lines[0]
    assert (
        lines[-2]
        == f"  {count} of dp_moments together: epsilon more than 30 (beyond which nothing is claimed)"
    )
    assert lines[-1] == (
        f"  {made[5].fingerprint[:12]} (dp_moments) brought it above 30, as number 6 of {count}: those before it come "
        f"to {epsilon(*made[:5])}. What each release says of itself still holds."
    )


def test_show_names_one_release_that_passes_thirty_alone(folder, said):
    large = release(mechanism="dpsgd", cost={"kind": "gaussian", "mu": 9.0})
    entered(folder, large, release())
    assert said("show")[-1].endswith("(dpsgd) alone passes 30, and each later one adds to it.")


def test_show_names_a_release_that_was_closed_and_never_opened(folder, said):
    """The chain is whole, and the total counts it."""
    ledger = entered(folder)
    with ledger.chain.locked():
        ledger.chain.append(
            {"event": "close", "fingerprint": "f" * 64, "cost": {"kind": "none"}, "statement": {}}
        )
    assert said("show")[-1].startswith("  Without a guarantee: ffffffffffff (never opened).")


def test_plan_says_why_it_has_no_figure(folder, said):
    entered(folder, release())
    assert said("plan", "--epsilons", "1", "3", "--generators", "2") == [
        f"4 Gaussian releases: epsilon {epsilon(*[release(), release(3.0)] * 2)} at delta 1e-05 together",
        f"  digits/c0: {epsilon(release())} now, {epsilon(*[release(), release(3.0)] * 2, release())} after, "
        "at delta 1e-05",
    ]
    beyond = said("plan", "--repeat", "10")
    assert beyond[0].startswith(
        "10 Gaussian releases: epsilon more than 30 (beyond which nothing is claimed) at delta"
    )
    assert beyond[1].endswith(
        "now, more than 30 (beyond which nothing is claimed) after, at delta 1e-05"
    )
    assert (
        "epsilon infinity (a release without a guarantee is among them)"
        in said("plan", "--epsilons", "inf")[0]
    )


WRONG = {
    "--delta": ("a float in [1e-300, 1)", ["-1", "0", "1", "nan", "much", "1e-320"]),
    "--epsilons": ("a float in (0, inf]", ["0", "-3", "nan", "much"]),
    "--generators": ("an int in [1, 1000000]", ["0", "-1", "1.5", "9" * 400]),
    "--repeat": ("an int in [1, 1000000]", ["0", "much"]),
}


@pytest.mark.parametrize("argument", WRONG)
def test_a_wrong_argument_is_one_sentence(folder, refused, argument):
    rule, values = WRONG[argument]
    for value in values:
        said = f"Error: The '{argument}' argument must be {rule}. Got {value!r} instead."
        assert refused("plan", argument, value) == said


def test_a_folder_that_was_named_must_be_there(folder, refused, said, monkeypatch):
    assert said("show") == [
        "ledgers holds no ledger DATASET/CLIENT.jsonl, so nothing was released from there yet."
    ]
    absent = "Error: The folder of ledgers must be an existing folder. Got 'absent' instead."
    for command in ("show", "verify", "plan"):
        assert refused(command, "--folder", "absent") == absent
    monkeypatch.setenv("FEDLENS_LEDGERS", "absent")
    assert refused("show") == absent


def test_the_command_finds_the_ledgers_by_the_stages_rule(folder, refused, said, monkeypatch):
    entered(folder.parent / "shared", release())
    monkeypatch.setenv("FEDLENS_LEDGERS", str(folder.parent / "shared"))
    assert said("verify") == ["digits/c0: 2 lines, the chain is whole"]
    (folder.parent / ".dvc/tmp/exps/x").mkdir(parents=True)
    monkeypatch.chdir(folder.parent / ".dvc/tmp/exps/x")
    monkeypatch.setenv("FEDLENS_LEDGERS", "ledgers")
    assert "as an absolute path. Got 'ledgers' instead." in refused("show")


@pytest.mark.parametrize("command", ["show", "verify"])
def test_each_damaged_ledger_is_named_and_the_others_are_shown(folder, capsys, command):
    entered(folder, release()).path.write_bytes(b"\xff\n")
    entered(folder, release(), client="c1").path.unlink()
    entered(folder, release(), client="c2")
    with pytest.raises(SystemExit) as ended:
        main([command])
    told = capsys.readouterr()
    errors = told.err.splitlines()
    assert ended.value.code == 1 and len(errors) == 2
    assert errors[0].endswith("c0.jsonl, line 1: not UTF-8; the line was edited.")
    assert "c1.jsonl is gone, but its head is not" in errors[1]
    assert told.out.startswith("digits/c2: ")


def test_plan_does_not_add_to_a_damaged_ledger(folder, refused):
    entered(folder, release()).chain.head.write_text("")
    assert re.match(r"Error: .*c0\.head is empty, as a power cut may leave", refused("plan"))


def test_a_file_that_cannot_be_read_is_one_sentence(folder, refused):
    (folder / "digits/c0.jsonl").mkdir(parents=True)
    assert refused("show") == "Error: Is a directory: ledgers/digits/c0.jsonl."


def test_a_reader_that_has_seen_enough_is_no_error(folder):
    """`head -1` leaves after the first line.

    Here the reader leaves before that, so that no chance is in it.
    """
    entered(folder, release())
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "pipelines.privacy.ledger", "show", "--folder", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=ENV, text=True, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert done.stderr == "" and done.returncode == -signal.SIGPIPE
