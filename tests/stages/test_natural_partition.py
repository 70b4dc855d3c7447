"""Tests data as hospitals have it from end to end: each record stays with its owner, from each of
the three places where an owner may be named.
"""

import numpy as np
import pytest
from PIL import Image
from project import own_images

from pipelines.datasets.labelled_images import load

pytestmark = pytest.mark.pipeline
SITES = ("north", "south", "west")
CLIENTS = {"c0": ["north", "west"], "c1": ["south"]}
PREPARED = "data/private/own/prepared"
SHARDS = "data/private/own/clients"
SOURCES = ("site_folder", "folder", "npz")
TARGETS = ("fine_tune@own-dp_moments",)


def site_of(row: int) -> str:
    # half of the records are the north's, whatever their class
    return SITES[max(0, (row // 3) % 4 - 1)]


def natural(params: dict) -> None:
    params["partition"].update(scheme="natural", sites=CLIENTS, small=None)
    params["synthesis"]["generators"] = ["dp_moments"]


def lay_out(project, source: str) -> None:
    """Puts the images and their owners where `source` looks for them."""
    project.edit(lambda params: params["profiles"]["own"].update(source=source))
    images = own_images()
    (project.path / "raw/own.npz").unlink(missing_ok=True)
    if source == "npz":
        clients = [site_of(row) for row in range(len(images["labels"]))]
        np.savez(project.path / "raw/own.npz", clients=clients, **images)
        return
    rows = ["file,client"]
    for row, (image, label) in enumerate(zip(*images.values())):
        name = f"class {label}/{row}.png"
        path = project.path / "raw/own" / (site_of(row) if source == "site_folder" else "") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
        rows.append(f"{name},{site_of(row)}")
    if source == "folder":
        (project.path / "raw/own/clients.csv").write_text("\n".join(rows) + "\n")


def pictures(path) -> set[bytes]:
    return {image.tobytes() for image in load(path).images}


def in_ci(source: str):
    """Returns the source as a case: one of them runs each time, the others with the slow tests."""
    return source if source == "folder" else pytest.param(source, marks=pytest.mark.slow)


@pytest.mark.parametrize("source", map(in_ci, SOURCES))
def test_each_record_is_dealt_to_its_owner_s_client_and_all_goes_on(within, source, capsys):
    lay_out(within, source)
    within.edit(natural)
    within.repro(*TARGETS)
    assert "own: site and number of its records: north (78), south (36), west (36)" in (
        capsys.readouterr().out
    )
    images = own_images()["images"]
    owner = {image.tobytes(): site_of(row) for row, image in enumerate(images)}
    assert len(owner) == 150
    dealt = set()
    for client, sites in CLIENTS.items():
        for part in ("train", "validation", "test"):
            path = within.path / SHARDS / client / f"{part}.npz"
            found = pictures(path)
            assert found and {owner[picture] for picture in found} <= set(sites)
            assert not dealt & found
            dealt |= found
            with np.load(path) as arrays:
                assert "owners" not in arrays
    assert dealt == pictures(within.path / PREPARED / "pool.npz")
    assert len(dealt) == 90  # of 150, less the global test set and the public images
    assert (within.path / "models/private/personal/own/dp_moments").is_dir()


def test_owners_stand_in_no_other_prepared_file_than_the_pool(within):
    lay_out(within, "npz")
    within.stage("prepare", "--dataset", "own")
    for part, has_owners in {"pool": True, "test": False, "public": False}.items():
        with np.load(within.path / PREPARED / f"{part}.npz") as arrays:
            assert ("owners" in arrays) == has_owners


def test_owners_do_not_change_what_another_scheme_deals(within):
    def dealt() -> dict[str, list[int]]:
        within.stage("prepare", "--dataset", "own")
        within.stage("partition", "--dataset", "own")
        folder = within.path / SHARDS
        return {
            path.parent.name + path.name: load(path).ids.tolist() for path in folder.rglob("*.npz")
        }

    without = dealt()
    lay_out(within, "npz")
    assert dealt() == without


def fails(project, stage: str, says: str) -> None:
    done = project.stage(stage, "--dataset", "own", ok=False)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert done.returncode == 1 and len(lines) == 1, done.stderr
    assert lines[0].startswith("Error: ") and says in lines[0]


def test_a_mistake_in_the_table_leaves_nothing_half_written(checkout):
    checkout.edit(natural)
    lay_out(checkout, "folder")
    table = checkout.path / "raw/own/clients.csv"
    whole = table.read_text()
    table.write_text(whole + "class 0/gone.png,north\n")
    fails(checkout, "prepare", "raw/own/clients.csv must name images below raw/own. Got 1")
    table.write_text(
        whole.replace("class 0/3.png,south\n", "").replace("class 0/3.png,north\n", "")
    )
    fails(checkout, "prepare", "must name the client of every image. 1 of 150 have none")
    assert not (checkout.path / PREPARED).exists()


def test_a_mistake_in_the_sites_leaves_nothing_half_written(checkout):
    checkout.edit(natural)
    lay_out(checkout, "npz")
    checkout.stage("prepare", "--dataset", "own")
    checkout.edit(lambda params: params["partition"].pop("sites"))
    fails(
        checkout, "partition", "The records' sites are north, south, west; the clients are c0, c1."
    )
    sites = {"c0": ["north"], "c1": ["south"]}
    checkout.edit(lambda params: params["partition"].update(sites=sites))
    fails(checkout, "partition", "without a client are west.")
    checkout.edit(lambda params: params["partition"].update(sites=CLIENTS, min_records=40))
    fails(checkout, "partition", "The 'min_records' parameter of partition must be at most ")
    assert not (checkout.path / SHARDS).exists()


def test_records_without_owners_are_refused_in_a_sentence(checkout):
    checkout.edit(natural)
    checkout.stage("prepare", "--dataset", "own")
    fails(checkout, "partition", "The 'scheme' parameter of partition must be dirichlet, shards, ")
    assert not (checkout.path / SHARDS).exists()
