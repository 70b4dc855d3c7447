"""Tests prepare as a user sees it: raw files outside the project, folders of images, missing
archives.
"""

import os
import shutil
import sys
from unittest import mock

import numpy as np
import pytest
from PIL import Image
from project import Project, own_images
from ruamel.yaml import YAML

from pipelines.datasets.labelled_images import load

PREPARED = "data/private/own/prepared"


def root_at(project, folder, source="npz"):
    project.edit(lambda params: params["prepare"].update(root=str(folder)))
    project.edit(lambda params: params["profiles"]["own"].update(source=source))


def raw_of(project) -> dict:
    lock = YAML(typ="safe").load((project.path / "dvc.lock").read_text())
    deps = lock["stages"]["prepare@own"]["deps"]
    return next(dep for dep in deps if "nfiles" in dep and not dep["path"].startswith("pipelines"))


@pytest.fixture
def elsewhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    np.savez(tmp_path / "elsewhere/own.npz", **own_images())
    return tmp_path / "elsewhere"


def test_files_outside_the_project_are_watched_and_their_hash_is_salted(within, elsewhere):
    root_at(within, "../elsewhere")
    (within.path / "raw/own.npz").unlink()
    assert within.repro("prepare") == ["prepare@own"]
    assert within.repro("prepare") == []
    before = raw_of(within)
    assert (elsewhere / "salt").exists() and before["size"] % (1 << 16) == 0
    images = own_images()
    images["images"][0, 5, 5] ^= 1
    np.savez(elsewhere / "own.npz", **images)
    assert within.repro("prepare") == ["prepare@own"]
    assert raw_of(within)["md5"] != before["md5"]


def test_a_public_data_set_writes_nothing_into_a_root_outside(checkout, elsewhere):
    checkout.edit(lambda params: params.update(datasets=["digits"]))
    root_at(checkout, elsewhere)
    (elsewhere / "own.npz").rename(elsewhere / "archive.gz")
    checkout.here("prepare", "--dataset", "digits")
    assert [path.name for path in elsewhere.iterdir()] == ["archive.gz"]


def test_a_root_that_also_holds_images_of_ones_own_is_salted_whoever_reads_from_it(
    checkout, elsewhere
):
    """DVC notes the whole folder for the public data set's stage: its hash would confirm a guess of own.npz."""
    checkout.edit(lambda params: params.update(datasets=["digits"]))
    root_at(checkout, elsewhere)
    checkout.here("prepare", "--dataset", "digits")
    assert (elsewhere / "salt").exists() and (elsewhere / ".padding").is_dir()


def test_the_raw_folder_is_salted_under_its_absolute_path_too(checkout):
    checkout.edit(lambda params: params.update(datasets=["digits"]))
    (checkout.path / "raw/own.npz").unlink()
    root_at(checkout, checkout.path / "raw")
    checkout.here("prepare", "--dataset", "digits")
    assert (checkout.path / "raw/salt").exists()


def test_a_second_clone_with_ledgers_of_its_own_is_told_and_one_with_the_same_is_not(
    checkout, elsewhere, tmp_path
):
    root_at(checkout, elsewhere)
    clone = Project(tmp_path / "clone")
    shutil.copytree(checkout.path, clone.path)
    assert "WARNING" not in prepared(checkout) + prepared(checkout)
    shared = str(checkout.path / "ledgers")
    assert "WARNING" not in prepared(clone, FEDLENS_LEDGERS=shared)
    said = prepared(clone)
    assert f"WARNING: {elsewhere} was used with other ledgers before" in said
    assert "Set FEDLENS_LEDGERS to one folder for both." in said
    assert "WARNING" in prepared(checkout)  # and so is the first, when it reads them again


def prepared(project, **environment: str) -> str:
    with mock.patch.dict(os.environ, environment):
        return project.here("prepare", "--dataset", "own").stdout


def test_a_global_test_set_of_no_image_is_refused(checkout):
    """All that follows would run, and spend, before the report finds nothing to test on."""
    checkout.edit(lambda params: params["prepare"].update(test_fraction=1e-6))
    assert "The 'test_fraction' parameter of prepare must be large enough" in fails(checkout)


def fails(project) -> str:
    done = project.here("prepare", "--dataset", "own", ok=False)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert done.returncode == 1 and len(lines) == 1 and lines[0].startswith("Error: "), done.stderr
    assert not (project.path / "data/private/own").exists()
    return lines[0]


def test_own_images_where_no_salt_can_be_written_are_refused(checkout, elsewhere):
    (
        elsewhere / "salt"
    ).mkdir()  # stands in for a folder that is read-only: root may write everywhere
    root_at(checkout, elsewhere)
    assert "The 'root' parameter of prepare must be a folder that can be written" in fails(checkout)


@pytest.mark.parametrize("inside", [".", "..", "../..", "images", "data/x", "raw/../images"])
def test_a_root_that_git_would_take_up_or_that_holds_the_project_is_refused(checkout, inside):
    root_at(checkout, inside)
    said = fails(checkout)
    assert (
        "must be 'raw', which Git ignores, or a folder beside the project. "
        f"Got '{inside}' instead. (params.yaml)" in said
    )


def test_archives_that_are_neither_there_nor_to_be_had_are_one_sentence(checkout, monkeypatch):
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    checkout.edit(lambda params: params.update(datasets=["mnist"]))
    done = checkout.here("prepare", "--dataset", "mnist", ok=False)
    assert done.returncode == 1 and not (checkout.path / "data/private/mnist").exists()
    said = done.stderr
    assert "raw/MNIST/raw/train-images-idx3-ubyte.gz is missing and could not be downloaded" in said
    assert "'prepare.root'" in said


def a_file_per_image(project) -> None:
    root_at(project, "raw", source="folder")
    for row, (image, label) in enumerate(zip(*own_images().values())):
        folder = project.path / f"raw/own/class {label}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{row}.png")


def test_dvc_does_not_note_how_many_images_a_folder_holds(within):
    """dvc.lock is in Git, and has the number of files of every folder."""
    a_file_per_image(within)
    noted = []
    for gone in ("0", "3"):
        (within.path / f"raw/own/class 0/{gone}.png").unlink()
        assert within.repro("prepare") == ["prepare@own"]
        noted.append({name: raw_of(within)[name] for name in ("nfiles", "size")})
    assert noted == [{"nfiles": 256, "size": noted[0]["size"]}] * 2


def test_public_records_are_taken_from_all_classes_before_anyone_is_dealt_any(checkout):
    done = checkout.here("prepare", "--dataset", "own")
    assert "30 declared public" in done.stdout
    checkout.here("partition", "--dataset", "own")
    parts = {
        name: load(checkout.path / PREPARED / f"{name}.npz") for name in ("pool", "test", "public")
    }
    assert [np.bincount(parts["public"].labels).tolist(), len(parts["test"])] == [[10, 10, 10], 30]
    ids = [set(part.ids.tolist()) for part in parts.values()]
    assert sum(map(len, ids)) == len(set.union(*ids)) == 150
    dealt = set()
    for path in (checkout.path / "data/private/own/clients").rglob("*.npz"):
        dealt |= set(load(path).ids.tolist())
    assert dealt == ids[0]


def test_no_record_is_public_where_none_is_declared(checkout):
    """The fraction under `prepare` is for public data sets: it never reaches images of one's own."""
    checkout.edit(lambda params: params["prepare"].update(public_fraction=0.5))
    checkout.edit(lambda params: params["profiles"]["own"].update(public_fraction=None))
    assert "public" not in checkout.here("prepare", "--dataset", "own").stdout
    sizes = [
        len(load(checkout.path / PREPARED / f"{name}.npz")) for name in ("pool", "test", "public")
    ]
    assert sizes == [120, 30, 0]


def test_a_folder_per_class_runs_like_any_other_source(checkout):
    a_file_per_image(checkout)
    checkout.here("prepare", "--dataset", "own")
    with np.load(checkout.path / PREPARED / "pool.npz") as pool:
        assert len(pool["labels"]) == 90 and np.bincount(pool["labels"]).tolist() == [30, 30, 30]
        assert pool["images"][0].tobytes()[:14] == b"PRIVATE-CANARY"
    (checkout.path / "raw/own/class 0/0.png").write_bytes(b"no image")
    (checkout.path / PREPARED).rename(checkout.path / "before")
    done = checkout.here("prepare", "--dataset", "own", ok=False)
    assert (
        done.returncode == 1 and "Error: raw/own/class 0/0.png is no readable image" in done.stderr
    )
    assert not (checkout.path / PREPARED).exists()
    checkout.edit(lambda params: params["prepare"].update(on_unreadable="skip"))
    done = checkout.here("prepare", "--dataset", "own")
    assert "own: skipped 1 images that cannot be read (prepare.on_unreadable: skip)" in done.stdout
    assert len(load(checkout.path / PREPARED / "pool.npz")) in (89, 90)


def test_which_label_is_which_class_is_told_and_how_to_name_them(checkout):
    a_file_per_image(checkout)
    said = checkout.here("prepare", "--dataset", "own").stdout
    assert (
        "own: class and number of its records: 0 is class 0 (50), 1 is class 1 (50), 2 is class 2 (50)"
        in said
    )
    line = 'class_names: ["class 0", "class 1", "class 2"]'
    assert f"write under profiles.own:\n    {line}\n" in said
    before = {path.name: path.read_bytes() for path in (checkout.path / PREPARED).iterdir()}
    checkout.edit(lambda params: params["profiles"]["own"].update(YAML(typ="safe").load(line)))
    assert "cards name no class" not in checkout.here("prepare", "--dataset", "own").stdout
    assert {path.name: path.read_bytes() for path in (checkout.path / PREPARED).iterdir()} == before
    checkout.edit(lambda params: params["profiles"]["own"].update(class_names=["a", "b", "c"]))
    done = checkout.here("prepare", "--dataset", "own", ok=False)
    assert (
        "The 'class_names' parameter of profiles.own must be the class folders' names"
        in done.stderr
    )


def test_what_dvc_would_wait_for_is_told_before_it_starts(checkout):
    os.mkfifo(checkout.path / "raw/pipe")
    done = checkout.run(sys.executable, "-m", "pipelines.datasets.raw_files", ok=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "Error: DVC cannot read 1 of the names in raw, each of which is a pipe: raw/pipe."
    )
    (checkout.path / "raw/pipe").unlink()
    checkout.run(sys.executable, "-m", "pipelines.datasets.raw_files")
