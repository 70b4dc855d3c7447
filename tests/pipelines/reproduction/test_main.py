"""Tests a run with progress: the bytes of `dvc repro`, its lines, and how a failure ends."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from project import Project

pytestmark = pytest.mark.pipeline

EXPORTS = [f"export_synthetic@own-{client}-dp_moments" for client in ("c0", "c1")]
ALONE = "train_alone@own"
FILES = (
    "data/synthetic/own/c0/dp_moments/images.npz",
    "data/synthetic/own/c1/dp_moments/images.npz",
    "models/private/alone/own/c0.safetensors",
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


def stages_of(project: Project) -> list[str]:
    """Returns the names of the stages in dvc.lock."""
    return re.findall(r"^  (\S+):$", (project.path / "dvc.lock").read_text(), re.MULTILINE)


def announced(said: str) -> list[str]:
    """Returns the lines before each stage, without the time left."""
    return [line.partition(",")[0] for line in said.splitlines() if line.startswith("[")]


def test_it_gives_the_bytes_of_dvc_repro_counts_stages_and_runs_nothing_twice(two):
    ours, theirs = two
    said = reproduction(ours, "--jobs", "2", ALONE, *EXPORTS).stdout
    theirs.dvc("repro", ALONE, *EXPORTS)
    assert bytes_of(ours) == bytes_of(theirs)
    # in the order of the plan, whichever ended first
    assert set(stages_of(ours)) == set(stages_of(theirs))
    assert stages_of(ours) == [
        "prepare@own",
        "partition@own",
        "joint_release@own",
        "train_generator@own-c0-dp_moments",
        "train_generator@own-c1-dp_moments",
        *EXPORTS,
        ALONE,
    ]
    counts, names = zip(*(line.split() for line in announced(said)))
    assert counts == tuple(f"[{number}/8]" for number in range(1, 9))
    assert names[:3] == ("prepare@own", "partition@own", "joint_release@own")
    # two branches, each in its order
    for export in EXPORTS:
        cell = export.partition("@")[2]
        made = [f"train_generator@{cell}", export]
        assert [name for name in names if cell in name] == made
    assert "What each client has spent" in said and "use 'make push'" in said
    assert "Running stage" not in said and "> python" not in said and "git add" not in said
    # DVC agrees that nothing is left to do, and so does a second run
    assert "Data and pipelines are up to date" in ours.dvc("repro", ALONE, *EXPORTS).stdout
    again = reproduction(ours, ALONE, *EXPORTS).stdout
    assert "Nothing has changed: no stage had to run." in again and not announced(again)


def test_a_stage_beside_one_that_fails_comes_to_its_end_and_is_kept(checkout):
    """The damaged one has lost its client's records."""
    reproduction(checkout, "partition@own", "joint_release@own")
    shard = checkout.path / "data/private/own/clients/c0/train.npz"
    content = shard.read_bytes()
    shard.unlink()
    shard.write_bytes(content[:100])
    checkout.dvc("commit", "--force", "partition@own")
    cells = [f"train_generator@own-{client}-dp_moments" for client in ("c0", "c1")]
    done = reproduction(checkout, "--jobs", "2", *cells, ok=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert (
        done.stderr.strip().splitlines()[-1].startswith(f"Error: failed to reproduce '{cells[0]}'")
    )
    assert checkout.repro(cells[1]) == []


def test_a_number_of_jobs_that_is_none_is_a_sentence(checkout):
    done = reproduction(checkout, "--jobs", "0", ok=False)
    assert done.returncode == 2
    assert "argument --jobs: must be 1 or more. Got 0 instead." in done.stderr


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
