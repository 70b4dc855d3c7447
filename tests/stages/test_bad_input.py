"""Tests that bad input ends in one clear sentence and a non-zero exit, with nothing half-written.

Stages are real, and processes where the file says so.
"""

import resource

import numpy as np
import pytest
from project import own_images

PREPARED, SHARDS = "data/private/own/prepared", "data/private/own/clients"


def refuses(project, stage, *arguments, says, process=False, **options):
    """Checks that the stage fails with one `Error:` line that holds `says`.

    There is no traceback, and no output folder appears. The stage's command runs in this process,
    or in one of its own.
    """
    words = ("--dataset", "own", *arguments)
    run = project.stage if process else project.here
    done = run(stage, *words, ok=False, **options)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("Error: ")
    assert says in lines[0]
    leftovers = project.path / ".scratch/partial"
    assert not leftovers.exists() or not any(leftovers.iterdir())


PARAMETERS = {
    "unknown key": (
        lambda p: p["meta"].update(rouns=3),
        "The 'rouns' parameter of meta is unknown, did you mean 'rounds'?",
    ),
    "wrong type": (
        lambda p: p["meta"].update(rounds="many"),
        "The 'rounds' parameter of meta must be an int in [1, 1e6].",
    ),
    "a bool is no number": (
        lambda p: p.update(seed=True),
        "The 'seed' parameter must be an int in [0, 1e18]. Got True",
    ),
    "epsilon of zero": (
        lambda p: p["clients"]["c0"].update(epsilon=0),
        "The 'epsilon' parameter of clients.c0 must be a float in (0, inf]. Got 0 instead. (params.yaml)",
    ),
    "negative epsilon": (
        lambda p: p["clients"]["c0"].update(epsilon=-1),
        "must be a float in (0, inf]. Got -1 instead.",
    ),
    "delta of one": (
        lambda p: p["privacy"].update(delta=1.0),
        "The 'delta' parameter of privacy must be a float in [1e-15, 0.5]. Got 1.0 instead.",
    ),
    "delta of zero": (
        lambda p: p["clients"]["c0"].update(delta=0.0),
        "'delta' parameter of clients.c0 must be a float in [1e-15, 0.5]",
    ),
    "slash in a name": (
        lambda p: p["clients"].update({"a/b": {"epsilon": 1.0}}),
        "must be a name of letters, digits and underscores, and none of DVC's own, nfiles and size. Got 'a/b' instead.",
    ),
    "client without a shard": (
        lambda p: p["clients"].update({"c9": {"epsilon": 1.0}}),
        "'partition.clients'",
    ),
    "data set without a profile": (
        lambda p: p.update(datasets=["other"]),
        "a file in 'profiles'",
    ),
    "unknown generator setting": (
        lambda p: p["profiles"]["own"]["synthesis"]["dp_moments"].update(clipp=1),
        "The 'clipp' parameter of synthesis.dp_moments (profile own) is unknown, did you mean 'clip'?",
    ),
    "image folder of four channels": (
        lambda p: p["profiles"]["own"].update(source="folder", shape=[8, 8, 4]),
        "The 'shape' parameter of profiles.own must be [height, width, 1 or 3] for an image folder. Got [8, 8, 4]",
    ),
    "missing key": (
        lambda p: p["fine_tune"].pop("epochs"),
        "The 'epochs' parameter of fine_tune is missing.",
    ),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_bad_parameters(checkout, case):
    change, says = PARAMETERS[case]
    checkout.edit(change)
    refuses(checkout, "prepare", says=says)
    assert not (checkout.path / PREPARED).exists()


def test_params_that_are_no_yaml(checkout):
    (checkout.path / "params.yaml").write_text("seed: [1\nmeta: {")
    refuses(checkout, "prepare", says="params.yaml is not valid YAML (line", process=True)


def test_a_name_outside_the_roster(checkout):
    refuses(
        checkout,
        "train_generator",
        "--client",
        "c7",
        "--generator",
        "gan",
        says="must be one of ['c0', 'c1']. Got 'c7'",
    )


def test_an_algorithm_of_another_stage(checkout):
    refuses(
        checkout,
        "train_dp_baseline",
        "--algorithm",
        "fedavg",
        says="must be one of ['dpsgd']. Got 'fedavg'",
    )
    refuses(
        checkout,
        "train_baseline",
        "--algorithm",
        "dpsgd",
        says="['random_init', 'fedavg']. Got 'dpsgd'",
    )


@pytest.mark.parametrize("stage", ["meta_train", "fine_tune"])
@pytest.mark.parametrize("method", ["dpsgd", "random_init", "pooled", "../own"])
def test_a_method_that_shares_no_model_here(checkout, stage, method):
    refuses(
        checkout,
        stage,
        *("--generator", "dp_moments", "--method", method),
        says=f"The '--method' argument must be one of ['pppfl', 'fedavg']. Got '{method}' instead.",
    )


def write_raw(project, **changes):
    np.savez(project.path / "raw/own.npz", **{**own_images(), **changes})


def test_a_truncated_npz_is_named(checkout):
    raw = checkout.path / "raw/own.npz"
    raw.write_bytes(raw.read_bytes()[:2000])
    refuses(checkout, "prepare", says="raw/own.npz is corrupt or truncated", process=True)
    assert not (checkout.path / PREPARED).exists()


def test_a_flipped_byte_in_an_npz_is_found(checkout):
    raw = checkout.path / "raw/own.npz"
    blob = bytearray(raw.read_bytes())
    blob[3000] ^= 0xFF
    raw.write_bytes(blob)
    refuses(checkout, "prepare", says="raw/own.npz is corrupt or truncated")


def test_an_absent_npz(checkout):
    (checkout.path / "raw/own.npz").unlink()
    refuses(checkout, "prepare", says="raw/own.npz is missing")


def test_a_class_missing_everywhere(checkout):
    images = own_images()
    write_raw(checkout, labels=np.where(images["labels"] == 2, 1, images["labels"]))
    refuses(checkout, "prepare", says="Class 2 of own has no record at all")


def test_labels_outside_the_declared_list(checkout):
    write_raw(checkout, labels=own_images()["labels"] + 1)
    refuses(checkout, "prepare", says="The labels of own must be in [0, 2]. Got 1 to 3 instead.")


def test_images_of_another_shape(checkout):
    write_raw(checkout, images=np.zeros((150, 9, 8), np.uint8))
    refuses(
        checkout,
        "prepare",
        says="The 'shape' parameter of profiles.own must be the images' own, [9, 8, 1].",
    )


def test_more_clients_than_records(checkout):
    names = [f"c{i}" for i in range(200)]
    checkout.edit(lambda p: p["partition"].update(clients=names, scheme="dirichlet", small=None))
    checkout.stage("prepare", "--dataset", "own")
    refuses(
        checkout,
        "partition",
        says="at most as many clients as there are training records. Got 200 clients for 90",
    )
    assert not (checkout.path / SHARDS).exists()


def test_too_few_records_for_everyone(checkout):
    checkout.edit(lambda p: p["partition"].update(min_records=100, scheme="iid"))
    checkout.stage("prepare", "--dataset", "own")
    refuses(
        checkout, "partition", says="The 'min_records' parameter of partition must be reachable"
    )


def test_a_folder_that_cannot_be_written(checkout):
    (checkout.path / "data").write_text("a file where the folder should go")
    refuses(checkout, "prepare", says="Could not write data/private/own/prepared: ")


def test_a_disk_that_fills(checkout):
    def small_files_only():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    refuses(
        checkout,
        "prepare",
        says="Could not write data/private/own/prepared: File too large. Nothing was left half-written.",
        process=True,
        preexec_fn=small_files_only,
    )
    assert not (checkout.path / PREPARED).exists()


def test_a_stage_without_its_input(checkout):
    refuses(
        checkout,
        "partition",
        says="data/private/own/prepared/pool.npz is missing. Run the stage that makes it",
    )


def test_a_weak_plan_is_refused_with_what_would_work(checkout):
    checkout.edit(
        lambda p: p["profiles"]["own"]["synthesis"]["datalens"].update(weak_plan="refuse")
    )
    arguments = ("--client", "c0", "--generator", "datalens")
    says = "Take dp_moments, or more teachers"
    refuses(checkout, "train_generator", *arguments, says=says, process=True)
    assert not (checkout.path / "models/private/generators").exists()


def test_the_plan_is_made_before_anything_private_is_read(checkout):
    """No shard exists, yet the refusal is about the plan."""
    checkout.edit(lambda p: p["profiles"]["own"]["synthesis"]["datalens"].update(top_k=65))
    arguments = ("--client", "c0", "--generator", "datalens")
    refuses(
        checkout,
        "train_generator",
        *arguments,
        says="must be at most the 64 pixels of an image. Got 65",
    )
