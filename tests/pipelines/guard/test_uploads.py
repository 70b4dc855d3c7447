"""Uploads are checked in a small project whose graph is one export and one initial model."""

import shutil
from pathlib import Path

import exported
import numpy as np
import pytest
from dvc.repo import Repo
from key_files import pem
from small import EXPORT, INITIAL, PRIVATE, made

from pipelines.config.generators import WITH_CLASSIFIER
from pipelines.datasets.labelled_images import synthetic
from pipelines.files import sha256
from pipelines.guard import uploads
from pipelines.paths import CLASSIFIER
from pipelines.synthesis import export
from pipelines.synthesis.base import Weights


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = made(tmp_path)
    for path in (EXPORT, INITIAL, PRIVATE):
        (tmp_path / path).mkdir(parents=True)
    data = synthetic(np.zeros((3, 2, 2, 1)), np.arange(3))
    export.write(tmp_path / EXPORT, data, exported.card(data))
    for name in uploads.INITIAL:
        (tmp_path / INITIAL / name).write_text("{}")
    (tmp_path / PRIVATE / "state.key").write_text(pem())
    return project


def committed(project) -> list[str]:
    """Runs `dvc commit --force`, which takes the folders as they are, and returns what is wrong
    with them.
    """
    with Repo(".") as repo:
        repo.commit(force=True)
    return wrong()


def wrong() -> list[str]:
    """Returns what is wrong with the folders and with DVC's cache of them."""
    with Repo(".") as repo:
        return uploads.problems(Path(), list(uploads.cached(repo)))


def handed_out_with_a_classifier(project, generator: str) -> str:
    """Makes the one export of the project that of another generator, with a classifier.

    Returns:
        The path of the export.
    """
    path = EXPORT.replace("dp_moments", generator)
    graph = project.path / "dvc.yaml"
    graph.write_text(graph.read_text().replace(EXPORT, path))
    shutil.rmtree(project.path / EXPORT)
    (project.path / path).mkdir()
    data = synthetic(np.zeros((3, 2, 2, 1)), np.arange(3))
    weights = Weights("mlp", {"1.bias": np.zeros(3, np.float32)})
    card = exported.card(data, classifier=weights)
    export.write(project.path / path, data, card, weights)
    return path


@pytest.mark.parametrize("generator", WITH_CLASSIFIER)
def test_a_classifier_may_go_out_where_its_generator_releases_one(project, generator):
    path = handed_out_with_a_classifier(project, generator)
    assert committed(project) == []
    with Repo(".") as repo:
        (upload,) = [upload for upload in uploads.cached(repo) if upload.path == path]
    assert CLASSIFIER in upload.files


@pytest.mark.parametrize("generator", ["dp_moments", "joint_moments", "gan"])
def test_a_classifier_may_not_go_out_with_images_of_another_generator(project, generator):
    path = handed_out_with_a_classifier(project, generator)
    assert [line.split(". Make")[0].split(" (")[0] for line in committed(project)] == [
        f"{path}/{CLASSIFIER} is none of the files that may leave",
        f"{path}/SHA256SUMS names {CLASSIFIER}, which this export may not hold",
    ]


@pytest.mark.parametrize("place", ["huggingface", ""])
def test_nor_in_another_folder(project, place):
    path = handed_out_with_a_classifier(project, "dp_head")
    name = f"{place}/{CLASSIFIER}".lstrip("/")
    folder = path if place else INITIAL
    (project.path / folder / name).write_bytes((project.path / path / CLASSIFIER).read_bytes())
    (line,) = committed(project)
    assert line.startswith(f"{folder}/{name} is none of the files that may leave")


def test_a_classifier_that_is_missing_or_changed_is_named(project):
    path = handed_out_with_a_classifier(project, "dp_teacher")
    file = project.path / path / CLASSIFIER
    content = file.read_bytes()
    file.write_bytes(content + b" ")
    (line,) = committed(project)
    assert line.startswith(f"{path}/{CLASSIFIER} is another than its SHA256SUMS says.")
    file.unlink()
    (line,) = committed(project)
    assert line.startswith(f"{path} lacks {CLASSIFIER}.")


def pool_of(project, images: np.ndarray, labels: np.ndarray) -> None:
    synthetic(images, labels).save(project.path / INITIAL / uploads.POOL)


def test_a_pool_of_exported_images_may_go_out_with_the_model(project):
    pool_of(project, np.zeros((2, 2, 2, 1)), np.array([2, 0]))
    assert committed(project) == []


def test_a_pool_with_any_other_image_may_not(project):
    """One pixel of another grey, or an image under another label."""
    for pixel, label in ((0.1, 2), (0.0, 9)):
        images = np.zeros((2, 2, 2, 1))
        images[1, 0, 0] = pixel
        pool_of(project, images, np.array([0, label]))
        (line,) = committed(project)
        assert line.startswith(f"{INITIAL}/pool.npz holds 1 images that no export holds.")


def test_a_pool_that_is_changed_after_the_stage_is_seen_in_the_folder_itself(project):
    pool_of(project, np.zeros((2, 2, 2, 1)), np.array([2, 0]))
    assert committed(project) == []
    pool_of(project, np.ones((2, 2, 2, 1)), np.array([2, 0]))
    (line,) = wrong()
    assert line.startswith(f"{INITIAL}/pool.npz holds 2 images")


def test_a_pool_that_is_no_pool_is_named(project):
    (project.path / INITIAL / uploads.POOL).write_text("no images")
    (line,) = committed(project)
    assert line.startswith(f"{INITIAL}/pool.npz or an export that it is made of cannot be read.")


def summed(folder) -> None:
    """Writes SHA256SUMS as someone makes them who changed a file."""
    names = sorted(set(uploads.EXPORT) - {uploads.SUMS})
    (folder / uploads.SUMS).write_text(
        "".join(f"{sha256(folder / name)}  {name}\n" for name in names)
    )


def test_what_the_stages_write_passes(project):
    assert committed(project) == []
    with Repo(".") as repo:
        assert {upload.path for upload in uploads.cached(repo)} == {EXPORT, INITIAL}


@pytest.mark.parametrize("name", [name for name in uploads.EXPORT if name != uploads.SUMS])
def test_a_file_that_was_changed_is_named(project, name):
    file = project.path / EXPORT / name
    file.write_bytes(file.read_bytes() + b" ")
    (line,) = committed(project)
    assert line.startswith(f"{EXPORT}/{name} is another than its SHA256SUMS says.")
    assert "dvc repro --force --single-item export_synthetic" in line
    summed(project.path / EXPORT)
    assert committed(project) == []


@pytest.mark.parametrize("name", uploads.EXPORT)
def test_a_file_that_is_missing_is_named(project, name):
    (project.path / EXPORT / name).unlink()
    (line,) = committed(project)
    assert line.startswith(f"{EXPORT} lacks {name}.")


@pytest.mark.parametrize("path", [EXPORT, INITIAL])
@pytest.mark.parametrize(
    "name",
    ["scores.csv", "below/images.npz", ".hidden", "huggingface/data/train-00001-of-00002.parquet"],
)
def test_a_file_too_many_is_named(project, path, name):
    (project.path / path / name).parent.mkdir(parents=True, exist_ok=True)
    (project.path / path / name).write_text("x")
    (line,) = committed(project)
    assert line.startswith(f"{path}/{name} is none of the files that may leave")


def test_sums_that_name_too_little_or_too_much_are_named(project):
    sums = project.path / EXPORT / uploads.SUMS
    whole = sums.read_text()
    sums.write_text(
        "".join(line for line in whole.splitlines(True) if "card.md" not in line)
        + f"{'0' * 64}  more\n"
    )
    lines = committed(project)
    assert [line.split(".  ")[0].split(". Make")[0] for line in lines] == [
        f"{EXPORT}/SHA256SUMS does not name card.md",
        f"{EXPORT}/SHA256SUMS names more, which this export may not hold",
    ]
    sums.write_bytes(b"\xff\n\n")
    assert len(committed(project)) == len(uploads.EXPORT)


def test_the_cache_and_the_folder_are_both_looked_at(project):
    """DVC uploads the one, people hand out the other."""
    assert committed(project) == []
    card = project.path / EXPORT / "card.md"
    text = card.read_text()
    card.write_text("other")
    assert len(wrong()) == 1
    assert len(committed(project)) == 1
    card.write_text(text)
    assert len(wrong()) == 1


@pytest.mark.parametrize("path", [EXPORT, INITIAL])
def test_a_private_key_in_what_may_leave_is_named(project, path):
    name = sorted(project.path.joinpath(path).iterdir())[0].name
    (project.path / path / name).write_text(pem("EC "))
    lines = committed(project)
    assert any(
        line.startswith(f"{path}/{name} holds a private key, and it lies where `dvc push`")
        for line in lines
    )


BY_HAND = f"{INITIAL}-pooled"


def made_by_hand(project, images: np.ndarray, cards: str = '{"c0": {}}') -> None:
    """Makes the model of another method, which is no output of DVC, with a pool."""
    folder = project.path / BY_HAND
    folder.mkdir()
    for name in uploads.INITIAL:
        (folder / name).write_text(cards if name == uploads.CARDS else "{}")
    synthetic(images, np.zeros(len(images), int)).save(folder / uploads.POOL)


def test_a_model_made_by_hand_may_have_a_pool_of_exported_images(project):
    made_by_hand(project, np.zeros((2, 2, 2, 1)))
    assert committed(project) == []


@pytest.mark.parametrize("cards", ['{"c0": {}}', "{}", "no cards"])
def test_and_no_other_image_whatever_its_cards_say(project, cards):
    made_by_hand(project, np.ones((2, 2, 2, 1)), cards)
    (line,) = committed(project)
    assert line.startswith(f"{BY_HAND}/pool.npz holds 1 images that no export holds.")
    command = "python -m stages.meta_train --dataset own --generator dp_moments --method pooled"
    assert f"Make the folder again: `{command}`." in line


def test_a_client_that_has_its_own_export_alone_cannot_check_the_pool(project):
    made_by_hand(project, np.ones((2, 2, 2, 1)), '{"c0": {}, "c1": {}}')
    assert committed(project) == []


def test_a_model_made_by_hand_holds_no_other_file_and_no_key(project):
    made_by_hand(project, np.zeros((2, 2, 2, 1)))
    (project.path / BY_HAND / "results.json").write_text("{}")
    (project.path / BY_HAND / "rounds.csv").write_text(pem("EC "))
    (project.path / BY_HAND / "health.json").unlink()
    found = [line.removeprefix(BY_HAND).split(" Make")[0] for line in committed(project)]
    assert len(found) == 3 and found[2] == " lacks health.json."
    assert found[0].startswith("/results.json is none of the files that may leave")
    assert found[1].startswith("/rounds.csv holds a private key")


def test_such_a_model_as_an_output_of_a_users_own_graph_is_checked_alike(project):
    made_by_hand(project, np.zeros((2, 2, 2, 1)))
    graph = project.path / "dvc.yaml"
    graph.write_text(f"{graph.read_text()}  pooled: {{cmd: 'true', outs: [{BY_HAND}]}}\n")
    assert committed(project) == []
    synthetic(np.ones((1, 2, 2, 1)), np.zeros(1, int)).save(project.path / BY_HAND / uploads.POOL)
    assert [line.split(" images")[0] for line in committed(project)] == [
        f"{BY_HAND}/pool.npz holds 1"
    ]
