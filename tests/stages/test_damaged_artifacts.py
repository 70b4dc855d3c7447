"""Artifacts that are damaged before a stage reads them: a sentence or a correct result, and nothing half-written."""

import contextlib
import importlib
import shutil

import numpy as np
import pytest

from pipelines import config, paths
from pipelines.errors import told_in_a_sentence
from pipelines.files import write_arrays

GENERATOR = "dp_moments"


@pytest.fixture(scope="module")
def made(_checkout, tmp_path_factory):
    """Makes a project up to the initial model, whose stages ran in this process."""
    from project import Project

    path = tmp_path_factory.mktemp("damaged") / "fedlens"
    shutil.copytree(_checkout, path)
    project = Project(path)
    project.edit(lambda params: params["synthesis"].update(generators=[GENERATOR]))
    project.export(["c0", "c1"], GENERATOR)
    with contextlib.chdir(path):
        call("check_quality", "c0")
        call("meta_train")
        call("train_alone")
        call("fine_tune")
    return path


def call(stage: str, *client: str) -> None:
    importlib.import_module(f"stages.{stage}").run(
        config.load(), "own", *client, *GENERATORS_OF.get(stage, [GENERATOR])
    )


GENERATORS_OF = {"partition": [], "train_alone": []}
SHARD, SYNTHETIC = paths.shards("own") / "c0", paths.synthetic("own", "c0", GENERATOR)
INITIAL = paths.initial("own", GENERATOR)
TEST = paths.prepared("own") / "test.npz"
READS = {  # stage and client: (files it reads, the folder it writes)
    ("partition",): ([paths.prepared("own") / "pool.npz"], paths.shards("own")),
    ("train_generator", "c0"): ([SHARD / "train.npz"], paths.generator("own", "c0", GENERATOR)),
    ("export_synthetic", "c0"): (
        [
            paths.generator("own", "c0", GENERATOR) / name
            for name in ("generator.safetensors", "release.json")
        ],
        SYNTHETIC,
    ),
    ("check_quality", "c0"): (
        [
            SYNTHETIC / "images.npz",
            SHARD / "train.npz",
            SHARD / "validation.npz",
            SHARD / "test.npz",
            TEST,
        ],
        paths.quality("own", "c0", GENERATOR),
    ),
    ("meta_train",): ([SYNTHETIC / "images.npz", SYNTHETIC / "card.json"], INITIAL),
    ("train_alone",): ([SHARD / "train.npz"], paths.alone("own")),
    ("fine_tune",): (
        [
            paths.alone("own") / "c0.safetensors",
            paths.alone("own") / "cost.json",
            INITIAL / "rounds.safetensors",
            INITIAL / "privacy.json",
            paths.cost("own", GENERATOR) / "cost.json",
            SHARD / "train.npz",
            TEST,
        ],
        paths.personal("own", GENERATOR),
    ),
}


def cut(share):
    return lambda path: path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def folder_instead(path):
    path.unlink()
    path.mkdir()


DAMAGES = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "half": cut(0.5),
    "without its end": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "other bytes": lambda path: path.write_bytes(b"\xff\xfe\x00 no file of ours"),
    "a folder": folder_instead,
}
JSON = {
    "a number": "5",
    "nothing": "null",
    "a list": "[]",
    "an empty mapping": "{}",
    "mappings all the way": '{"privacy": {}, "release": {}}',
    "numbers all the way": '{"privacy": 5, "release": 5, "fingerprint": 5, "weak": 5}',
    "nested deep": "[" * 100_000,
}
ARRAYS = {
    "no array": {},
    "another array": {"other": np.zeros(3)},
}


def spoilt(path):
    """Returns {name: how it is done} for a file of this kind."""
    if path.suffix == ".json":
        return DAMAGES | {
            name: lambda path, text=text: path.write_text(text) for name, text in JSON.items()
        }
    if path.suffix == ".safetensors":
        return DAMAGES | {
            name: lambda path, arrays=arrays: write_arrays(path, arrays)
            for name, arrays in ARRAYS.items()
        }
    if path.name == "pool.npz":
        # dealt as it is: prepare alone holds it to the profile
        return DAMAGES | {"no records": emptied}
    return DAMAGES | {"no records": emptied, "other sides": resized, "other labels": relabelled}


def emptied(path):
    with np.load(path) as file:
        content = {name: array[:0] for name, array in file.items()}
    np.savez(path, **content)


def resized(path):
    with np.load(path) as file:
        content = dict(file)
    np.savez(path, **{**content, "images": content["images"][:, :5]})


def relabelled(path):
    with np.load(path) as file:
        content = dict(file)
    np.savez(path, **{**content, "labels": content["labels"] + 1})


CASES = [
    pytest.param(stage, path, damage, folder, id=f"{'-'.join(stage)}: {path.name}, {name}")
    for stage, (files, folder) in READS.items()
    for path in files
    for name, damage in spoilt(path).items()
]


@pytest.mark.parametrize("stage, path, damage, folder", CASES)
def test_a_damaged_file_is_a_sentence(made, monkeypatch, capsys, stage, path, damage, folder):
    monkeypatch.chdir(made)
    whole, before = path.read_bytes(), contents(folder)
    damage(path)
    try:
        with pytest.raises(SystemExit) as ended, told_in_a_sentence():
            call(*stage)
    finally:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.write_bytes(whole)
    assert ended.value.code.startswith("Error: ") and "\n" not in ended.value.code
    assert contents(folder) == before
    partial = paths.SCRATCH / "partial"
    assert not partial.exists() or not list(partial.iterdir())


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
