"""Tests a run with progress: the bytes of `dvc repro`, its lines, and how a failure ends."""

import shutil
import sys
from pathlib import Path

import pytest
from project import Project

pytestmark = pytest.mark.pipeline

CHECK = "check_quality@own-c0-dp_moments"
FILES = (
    "data/synthetic/own/c0/dp_moments/images.npz",
    "models/private/quality/own/c0/dp_moments/quality.json",
)


def reproduction(project: Project, *targets: str, ok: bool = True):
    return project.run(sys.executable, "-m", "pipelines.reproduction", *targets, ok=ok)


def bytes_of(project: Project) -> list[bytes]:
    return [(project.path / name).read_bytes() for name in FILES]


@pytest.fixture
def two(checkout, tmp_path) -> tuple[Project, Project]:
    checkout.edit(lambda params: params["privacy"].update(noise="seeded_for_tests"))
    shutil.copytree(checkout.path, tmp_path / "other")
    return checkout, Project(tmp_path / "other")


def test_it_gives_the_bytes_of_dvc_repro_counts_stages_and_runs_nothing_twice(two):
    ours, theirs = two
    said = reproduction(ours, CHECK).stdout
    theirs.dvc("repro", CHECK)
    assert bytes_of(ours) == bytes_of(theirs)
    counted = [line for line in said.splitlines() if line.startswith("[")]
    assert [line.partition(",")[0] for line in counted] == [
        "[1/6] prepare@own",
        "[2/6] partition@own",
        "[3/6] joint_release@own",
        "[4/6] train_generator@own-c0-dp_moments",
        "[5/6] export_synthetic@own-c0-dp_moments",
        f"[6/6] {CHECK}",
    ]
    assert "What each client has spent" in said and "use 'make push'" in said
    assert "Running stage" not in said and "> python" not in said
    # DVC agrees that nothing is left to do, and so does a second run
    assert ours.repro(CHECK) == []
    assert "Data and pipelines are up to date" in ours.dvc("repro", CHECK).stdout
    again = reproduction(ours, CHECK).stdout
    assert "Nothing has changed: no stage had to run." in again and "[1/6]" not in again


def test_a_stage_that_fails_ends_the_run_with_its_own_sentence(checkout):
    (checkout.path / "raw/own.npz").write_bytes(b"no container")
    done = reproduction(checkout, "prepare@own", ok=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    sentence, reason = done.stderr.strip().splitlines()[-2:]
    assert sentence.startswith("Error: ") and "own.npz" in sentence
    assert reason.startswith("Error: failed to reproduce 'prepare@own'")


def test_a_bad_parameter_is_told_before_dvc_is_loaded(checkout):
    checkout.edit(lambda params: params.update(seed=-1))
    done = reproduction(checkout, ok=False)
    assert done.returncode == 1 and done.stderr.startswith("Error: The 'seed' parameter")


def test_a_target_that_is_no_stage_is_a_sentence(checkout):
    done = reproduction(checkout, "nothing@here", ok=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "nothing@here" in done.stderr


def test_stages_never_run_where_the_raw_files_are_none_that_dvc_reads(checkout):
    (Path(checkout.path) / "raw/broken").symlink_to("nowhere")
    done = reproduction(checkout, ok=False)
    assert done.returncode == 1 and "a link that leads nowhere" in done.stderr
