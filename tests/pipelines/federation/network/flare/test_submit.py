"""Tests what the submitter's terminal says while the clients come, and while the job runs."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from pipelines.errors import UserError
from pipelines.federation.network import gate
from pipelines.federation.network.flare import jobs, submit

CLIENTS = ["c0", "c1", "c2"]
UUID = "69b39f85-246f-4f6f-b008-c01df09833c8"


class Session:
    """Answers each look with the next of some lists of connected clients, then with the last."""

    def __init__(self, *looks: list[str]):
        self.looks = list(looks)

    def get_system_info(self):
        names = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return SimpleNamespace(client_info=[SimpleNamespace(name=name) for name in names])


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(jobs, "POLL", 0)


def test_each_client_is_told_of_once_when_it_comes(capsys):
    session = Session([], ["c1"], ["c1"], ["c1", "another"], ["c2", "c1", "c0"])
    submit._wait_for_clients(session, CLIENTS, 60, lambda: None)
    assert capsys.readouterr().out.splitlines() == [
        "  The server answers. Waiting for 3 clients: c0, c1, c2.",
        "  c1 is there (1 of 3).",
        "  c0 is there (2 of 3).",
        "  c2 is there (3 of 3).",
    ]


def test_clients_that_do_not_come_are_named_in_the_end(capsys):
    with pytest.raises(UserError, match=r"After 0 s these clients have not come: c0, c2\."):
        submit._wait_for_clients(Session(["c1"]), CLIENTS, 0, lambda: None)
    assert "  c1 is there (1 of 3)." in capsys.readouterr().out


class Job:
    """Gives one answer to each question for a job's phase. None is no answer."""

    def __init__(self, *answers: str | None):
        self.answers = list(answers)

    def do_app_command(self, job, topic, data):
        assert (job, topic) == ("j1", "progress")
        answer = self.answers.pop(0)
        if answer is None:
            raise RuntimeError("Job_id: j1 is not running.")
        return {"phase": answer}


def test_the_phase_of_a_job_is_told_when_it_has_changed(capsys, monkeypatch):
    monkeypatch.setattr(jobs, "ASK_EVERY", 0)
    answers = [None, "", "the clients make ready", "round 1 of 9", "round 1 of 9", "a\tb\x1b[2J"]
    answers.append(["x" * 5000])
    progress = jobs._Progress(Job(*answers), "j1")
    for _ in answers:
        progress.tell()
    assert capsys.readouterr().out.splitlines() == [
        "  0 s: the clients make ready",
        "  0 s: round 1 of 9",
        "  0 s: a b [2J",
        f"  0 s: ['{'x' * (gate.LONGEST - 2)}..",
    ]


def test_a_job_is_asked_every_few_seconds_alone(capsys):
    progress = jobs._Progress(Job("round 1 of 9"), "j1")
    progress.tell()
    assert progress.session.answers == ["round 1 of 9"] and not capsys.readouterr().out
    progress.asked -= jobs.ASK_EVERY
    progress.tell()
    progress.tell()
    assert capsys.readouterr().out == "  0 s: round 1 of 9\n"


class Gone:
    """Is a terminal that was closed."""

    def write(self, text):
        raise BrokenPipeError

    flush = write


def test_a_terminal_that_is_gone_ends_no_job(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Gone())
    jobs.say("round 1 of 9")


@pytest.mark.parametrize("name", ["", None, "../x", "6 ../../x", "\x1b[2J", f"{UUID} x"])
def test_a_job_whose_name_is_none_is_refused_and_nothing_is_fetched(name):
    session = SimpleNamespace(submit_job=lambda folder: name)
    with pytest.raises(UserError, match="gave the job a name"):
        jobs.submit_and_fetch(session, Path("job"), "", lambda: None)


def test_a_job_is_told_of_with_its_logs_and_its_folder_fetched(capsys):
    session = SimpleNamespace(
        submit_job=lambda folder: UUID,
        get_job_meta=lambda name: {"status": "FINISHED:COMPLETED"},
        download_job_result=lambda name: f"here/{name}",
    )
    folder = jobs.submit_and_fetch(session, Path("job"), "Its log is {job}/log.txt.", lambda: None)
    assert folder == Path(f"here/{UUID}/workspace")
    said = f"  Job {UUID} is submitted. Its log is {UUID}/log.txt.\n"
    assert capsys.readouterr().out == said
