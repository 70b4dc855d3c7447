"""The same seed gives the same bytes with the test-only noise; real noise does not; the card says which it was.

Each training is a fresh process: one that goes on has a state of its own.
"""

import hashlib
import json
import shutil

import pytest

CELL = ("--dataset", "own", "--client", "c0", "--generator")


def export(project, generator: str, *, forget: bool = True) -> tuple[str, dict]:
    """Returns the digest of every byte of the export, and its card, after both stages of one cell.

    Without the ledger's memory the release is made anew.
    """
    if forget:
        for path in (project.path / "ledgers/own").glob("c0.[!s]*"):
            path.unlink()
        shutil.rmtree(project.path / "ledgers/own/releases", ignore_errors=True)
    project.stage("train_generator", *CELL, generator)
    project.here("export_synthetic", *CELL, generator)
    folder = project.path / "data/synthetic/own/c0" / generator
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    blobs = b"".join(path.read_bytes() for path in files)
    return hashlib.sha256(blobs).hexdigest(), json.loads((folder / "card.json").read_text())


def prepared(project, noise: str):
    project.edit(lambda params: params["privacy"].update(noise=noise))
    project.edit(lambda params: params["profiles"]["own"]["synthesis"].update(gan={"steps": 5}))
    project.edit(
        lambda params: params["synthesis"].update(generators=["datalens", "dp_moments", "gan"])
    )
    project.here("prepare", "--dataset", "own")
    project.here("partition", "--dataset", "own")
    return project


# six fresh processes with teachers take a minute
@pytest.mark.parametrize(
    "generator", [pytest.param("datalens", marks=pytest.mark.slow), "dp_moments"]
)
def test_test_noise_repeats_its_bytes_and_voids_the_guarantee(checkout, generator):
    project = prepared(checkout, "seeded_for_tests")
    first, card = export(project, generator)
    assert export(project, generator)[0] == first
    assert card["privacy"]["guarantee"] == "none"
    assert "NO PRIVACY GUARANTEE" in card["privacy"]["statement"]
    project.edit(lambda params: params.update(seed=8))
    assert export(project, generator)[0] != first


@pytest.mark.parametrize("generator", ["datalens", "dp_moments"])
def test_real_noise_never_comes_from_the_seed(checkout, generator):
    project = prepared(checkout, "os_entropy")
    (first, card), (second, _) = export(project, generator), export(project, generator)
    assert first != second
    assert card["privacy"]["guarantee"] == "formal"


@pytest.mark.parametrize("generator", ["datalens", "dp_moments"])
def test_the_same_release_is_made_once_and_charged_once(within, generator):
    project = prepared(within, "os_entropy")
    first, _ = export(project, generator)
    ledger = (project.path / "ledgers/own/c0.jsonl").read_text()
    shutil.rmtree(project.path / "models/private")
    assert export(project, generator, forget=False)[0] == first
    assert (project.path / "ledgers/own/c0.jsonl").read_text() == ledger
    assert len(ledger.splitlines()) == 2


def test_the_gan_is_marked_whatever_its_client_asked_for(within):
    project = prepared(within, "os_entropy")
    _, card = export(project, "gan")
    assert card["privacy"]["guarantee"] == "none"
    assert card["privacy"]["epsilon"] == "inf"


def test_partitions_follow_the_seed(within):
    project = prepared(within, "os_entropy")

    def digest():
        files = sorted((project.path / "data/private/own/clients").rglob("*.npz"))
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()

    first = digest()
    project.stage("partition", "--dataset", "own")
    assert digest() == first
    project.edit(lambda params: params.update(seed=8))
    project.stage("partition", "--dataset", "own")
    assert digest() != first
