"""Tests `python -m pipelines.datasets add`: what it sees and writes, and that the rest follows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import parameter_files
import pytest
from PIL import Image
from project import ROOT
from ruamel.yaml import YAML

from pipelines import config
from pipelines.datasets import __main__ as command
from pipelines.datasets import inspection, partitions, preparation, proposal
from pipelines.datasets.inspection import looks_like_sites
from pipelines.errors import UserError


def save(path: Path, size: tuple[int, int] = (20, 30), colour: bool = True, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (size[1], size[0], 3 if colour else 1)).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels if colour else pixels[..., 0]).save(path)


def by_class(root: Path, name: str, counts: dict[str, int], **kwargs) -> Path:
    for label, (kind, count) in enumerate(counts.items()):
        for number in range(count):
            save(root / name / kind / f"{number}.png", seed=100 * label + number, **kwargs)
    return root / name


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Has the shipped parameters and an empty folder of raw files."""
    parameter_files.copy_files(ROOT, tmp_path)
    (tmp_path / "raw").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def add(name: str, path: Path | None = None, by_site: bool | None = None) -> None:
    command.add(config.load(), name, path, by_site=by_site)


def test_a_folder_with_damaged_files_is_told_whole_and_can_be_used(project, capsys):
    folder = by_class(project / "raw", "skin", {"benign": 120, "malignant": 90})
    save(folder / "benign/large.jpg", size=(140, 90))
    (folder / "benign/broken.png").write_bytes(b"no picture")
    (folder / "malignant/scan.dcm").write_bytes(b"DICM")
    (folder / "notes.txt").write_text("a note")
    add("skin")
    told = capsys.readouterr().out
    assert "raw/skin: 211 images in 2 classes" in told
    assert "label 0  benign         121" in told and "label 1  malignant       90" in told
    assert "sizes: 30 to 90 high, 20 to 140 wide; 3 channels" in told
    assert "2 cannot be read:" in told and "broken.png" in told and "scan.dcm" in told
    assert "left out 1, each no image by the ending of its name: notes.txt" in told
    assert "on_unreadable: skip     # leaves out the 2 above" in told
    assert "# Without `datalens`, which takes longest." in told
    assert followed(told).synthesis.generators == ["dp_moments"]
    profile = config.load().profiles["skin"]
    assert profile.shape == [32, 32, 3] and profile.classes == 2 and profile.source == "folder"
    # what the lines ask for, put into params.yaml, is what the pipeline reads
    params = followed(told)
    read = preparation.prepared(params, "skin")
    assert len(read.read) == 211 and read.names == ["benign", "malignant"]


def followed(told: str) -> config.Params:
    """Does to params.yaml what the command says, and loads it."""
    lines = told.split("Change these lines of params.yaml:\n")[1].split("\nThen run")[0]
    asked = YAML(typ="safe").load(lines)

    content = parameter_files.read(Path())
    for block, values in asked.items():
        if isinstance(values, dict):
            content[block].update(values)
        else:
            content[block] = values
    used = content["partition"]["clients"]
    content["clients"] = {name: content["clients"].get(name, {"epsilon": 10.0}) for name in used}
    content["new_clients"]["held_out"] = []
    parameter_files.write(Path(), content)
    return config.load()


def test_the_proposed_partition_holds_under_every_seed(project, capsys):
    """With `min_records` as shipped some draws leave a client too few to be tested."""
    by_class(project / "raw", "skin", {"a": 80, "b": 80, "c": 80})
    add("skin")
    params = followed(capsys.readouterr().out)
    assert params.partition.scheme == "dirichlet" and params.partition.min_records > 10
    pool = preparation.prepared(params, "skin").read
    refused = []
    for least in (params.partition.min_records, 10):
        settings = params.partition.model_copy(update={"min_records": least})
        refused.append(0)
        for seed in range(100, 130):
            try:
                partitions.cut(pool, settings, np.random.default_rng(seed))
            except UserError:
                refused[-1] += 1
    assert refused[0] == 0 < refused[1]


def test_without_the_slowest_generator_nothing_is_said_of_it(project, capsys):
    by_class(project / "raw", "skin", {"benign": 60, "malignant": 60})
    content = parameter_files.read(Path())
    content["synthesis"]["generators"] = ["dp_moments"]
    parameter_files.write(Path(), content)
    add("skin")
    assert "datalens" not in capsys.readouterr().out


def test_folders_of_sites_are_seen_and_each_site_keeps_its_images(project, capsys):
    for site in ("north", "south"):
        by_class(project / "raw/scans", site, {"well": 40, "ill": 30}, colour=False)
    add("scans")
    told = capsys.readouterr().out
    assert "2 sites own them:" in told and "site  north       70" in told
    profile = config.load().profiles["scans"]
    assert profile.source == "site_folder"
    # all have one size, which is small enough to stay
    assert profile.shape == [30, 20, 1]
    params = followed(told)
    assert params.partition.scheme == "natural"
    assert params.partition.sites == {"c0": ["north"], "c1": ["south"]}


def test_folders_of_classes_may_have_folders_of_their_own(project):
    folder = by_class(project / "raw", "skin", {"benign/2019": 3, "malignant/2020": 3})
    assert not looks_like_sites(folder)
    by_class(project / "raw", "skin", {"malignant/2019": 3})
    assert looks_like_sites(folder)
    add("skin", by_site=False)
    assert config.load().profiles["skin"].source == "folder"


def test_a_table_of_owners_makes_the_first_folders_those_of_classes(project):
    folder = by_class(project / "raw", "skin", {"a/x": 2, "b/x": 2})
    assert looks_like_sites(folder)
    (folder / "clients.csv").write_text("file,client\n")
    assert not looks_like_sites(folder)


def test_an_npz_elsewhere_keeps_its_shape_and_its_test_part(project, tmp_path_factory, capsys):
    place = tmp_path_factory.mktemp("elsewhere")
    rng = np.random.default_rng(0)
    arrays = {}
    for part, count in (("train", 300), ("test", 40)):
        arrays[f"{part}_images"] = rng.integers(0, 256, (count, 24, 20)).astype(np.uint8)
        arrays[f"{part}_labels"] = np.arange(count) % 3
    np.savez(place / "cells.npz", **arrays)
    add("cells", place / "cells.npz")
    told = capsys.readouterr().out
    assert "300 images in 3 classes" in told and "test part: 40 images" in told
    assert f"root: {place}" in told and "DVC reads all of that folder" not in told
    assert config.load().profiles["cells"].shape == [24, 20, 1]


def test_what_lies_beside_a_data_set_elsewhere_is_told(project, tmp_path_factory, capsys):
    place = tmp_path_factory.mktemp("home")
    by_class(place, "skin", {"a": 150, "b": 150})
    (place / "letters").mkdir()
    (place / "salt").write_bytes(b"of an earlier run")
    add("skin", place / "skin")
    told = capsys.readouterr().out
    assert f"root: {place}" in told and "(beside skin: 1 more)" in told
    assert followed(told).prepare.root == str(place)


def test_a_data_set_beside_the_project_would_make_dvc_read_its_own_outputs(project):
    by_class(project.parent, "skin", {"a": 150, "b": 150})
    with pytest.raises(UserError, match="lies in a folder that holds this project, too"):
        add("skin", project.parent / "skin")
    assert not (project / "profiles/skin.yaml").exists()


@pytest.mark.parametrize(
    ("name", "path", "said"),
    [
        ("digits", None, "profiles/digits.yaml is there already"),
        ("absent", None, "raw/absent is missing"),
        ("skin", "raw/other", "must be the data set's name, skin"),
        ("skin", "nowhere/skin", "nowhere/skin is missing"),
        ("two words", None, "must be letters, digits and underscores"),
        ("one", None, "needs readable images of two classes"),
    ],
)
def test_a_mistake_is_one_sentence_and_writes_nothing(project, name, path, said):
    by_class(project / "raw", "other", {"a": 2, "b": 2})
    by_class(project / "raw", "one", {"a": 2})
    before = sorted((project / "profiles").iterdir())
    with pytest.raises(UserError, match=said):
        add(name, path and Path(path))
    assert sorted((project / "profiles").iterdir()) == before


def test_channels_first_are_refused_before_a_profile_is_written(project):
    arrays = {"images": np.zeros((40, 3, 8, 8), np.uint8), "labels": np.arange(40) % 2}
    (project / "raw").mkdir(exist_ok=True)
    np.savez(project / "raw/cells.npz", **arrays)
    said = r"channels first, \['n', 3, 8, 8\].* Convert: images = np.moveaxis\(images, 1, -1\)\."
    with pytest.raises(UserError, match=said):
        add("cells")
    assert not (project / "profiles/cells.yaml").exists()


def test_a_profile_that_no_command_would_take_is_not_left(project, monkeypatch):
    by_class(project / "raw", "skin", {"a": 60, "b": 60})
    written = proposal.as_yaml
    monkeypatch.setattr(
        proposal,
        "as_yaml",
        lambda *proposed: written(*proposed).replace("classes: 2", "classes: 0"),
    )
    with pytest.raises(UserError, match=r"The .classes. parameter of profiles\.skin must be"):
        add("skin")
    assert not (project / "profiles/skin.yaml").exists()
    config.load()


def test_nothing_in_the_profile_follows_from_how_many_images_there_are(project):
    few = by_class(project / "raw", "few", {"a": 30, "b": 30})
    by_class(project / "raw", "many", {"a": 90, "b": 60})
    profiles = []
    for name in (few.name, "many"):
        found = inspection.look(project / "raw", name)
        shipped = config.load().partition
        profiles.append(proposal.propose(found, shipped, 0.2).profile)
    assert json.dumps(profiles[0]) == json.dumps(profiles[1])


def test_too_few_images_for_two_clients_are_told_so(project, capsys):
    by_class(project / "raw", "few", {"a": 8, "b": 8})
    add("few")
    assert "No number of clients from 2 on" in capsys.readouterr().out


@pytest.mark.parametrize("colour", [True, False])
def test_every_proposed_profile_is_valid_and_serves_each_generator(project, colour):
    by_class(project / "raw", "skin", {"a": 60, "b": 60}, size=(70, 80), colour=colour)
    add("skin")
    params = config.load()
    for name in ("dp_moments", "dp_merf", "datalens", "dp_teacher", "dp_head"):
        params.generator("skin", name)
    side = proposal.COLOUR_SIDE if colour else proposal.GREY_SIDE
    assert params.profiles["skin"].shape == [side, side, 3 if colour else 1]
    largest = np.sqrt(np.prod(params.profiles["skin"].shape)) / 2
    assert params.generator("skin", "dp_moments").clip == pytest.approx(largest / 2, abs=0.1)


def test_the_command_line_ends_with_a_sentence(project):
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.datasets", "add", "absent"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("Error: raw/absent is missing.")
