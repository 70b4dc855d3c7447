"""All that Git and `dvc push` could carry, in worlds that differ in nothing but private data: it
must be the same.

Three worlds. `here`: a federation. `elsewhere`: the same public parameters and secrets, other
records: other numbers of them, other classes, other pixels; its mechanisms sum its own records, and
release what those of `here` released, as noise may have it. So what can leave both must be equal,
byte for byte, unless it hangs on records otherwise than through a release in the ledger. `twin`:
the records of `here` under other secrets. What DVC notes of private files there must differ, or its
hash would follow from the records alone.

Left out of the first comparison, and nothing else:
* in dvc.lock and in the run cache, the md5 of what is private (PRIVATE). The second comparison is for these;
* the names of run-cache files and of the experiment's commit: hashes of the above;
* the project's own path in EXPERIMENT, a file that `dvc exp save` commits: where it lies follows from no record.
"""

import difflib
import hashlib
import json
import os
import shutil
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from ruamel.yaml import YAML
from worlds import World

from pipelines import paths
from pipelines.datasets import shards
from pipelines.files import write_json
from pipelines.synthesis import dp_moments, export

EXPERIMENT = "experiment .dvc/tmp/repro.dat"
PRIVATE = ("data/private/", "models/private/", "reports", "raw")

pytestmark = pytest.mark.pipeline


def other_images(count: int = 190) -> dict[str, np.ndarray]:
    """Returns what is as public as own_images, and nothing else of it."""
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (count, 8, 8)).astype(np.uint8)
    return {"images": images, "labels": rng.choice(3, count, p=[0.6, 0.25, 0.15])}


def without_private_hashes(text: bytes) -> bytes:
    """Returns dvc.lock, or an entry of the run cache, without the hashes of private files."""
    content = YAML(typ="safe").load(text.decode())
    for stage in content.get("stages", {"": content}).values():
        for entry in [*stage.get("deps", []), *stage.get("outs", [])]:
            if entry["path"].startswith(PRIVATE):
                entry["md5"] = "salted"
    return json.dumps(content, indent=1).encode()


def carried(world: World) -> dict[str, bytes]:
    """Returns World.carried without what is left out.

    A command's entries in the run cache become one.
    """
    found = world.carried()
    found[EXPERIMENT] = found[EXPERIMENT].replace(str(world.path).encode(), b"PATH")
    for name in [name for name in found if name.endswith("dvc.lock")]:
        found[name] = without_private_hashes(found[name])
    for name in [name for name in found if name.startswith("run cache")]:
        found.setdefault(name.split(" #")[0], []).append(without_private_hashes(found.pop(name)))
    return {
        name: b"".join(sorted(blob)) if isinstance(blob, list) else blob
        for name, blob in found.items()
    }


def differences(here: dict[str, bytes], elsewhere: dict[str, bytes]) -> dict[str, str]:
    """Returns {what: the lines that differ}."""
    return {
        name: difference(here.get(name, b""), elsewhere.get(name, b""))
        for name in sorted({*here, *elsewhere})
        if here.get(name) != elsewhere.get(name)
    }


def difference(one: bytes, other: bytes) -> str:
    lines = (blob.decode(errors="replace").splitlines() for blob in (one, other))
    return (
        "\n".join(
            line for line in difflib.unified_diff(*lines, lineterm="", n=1) if "\0" not in line
        )
        or "bytes"
    )


def unsalted(here: World, twin: World) -> set[str]:
    """Returns private paths that DVC notes with the same content under either secret.

    Their hash confirms a guess.
    """
    lock = YAML(typ="safe").load((here.path / "dvc.lock").read_text())
    entries = [
        entry
        for stage in lock["stages"].values()
        for part in ("deps", "outs")
        for entry in stage.get(part, [])
    ]
    noted = {entry["path"] for entry in entries if entry["path"].startswith(PRIVATE)}
    assert len(noted) > 15
    return {path for path in noted if content(here.path / path) == content(twin.path / path)}


def content(path: Path) -> dict[str, bytes]:
    files = path.rglob("*") if path.is_dir() else [path]
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()}


GENERATORS = ("datalens", "dp_moments")
STAGES = (
    "prepare",
    "partition",
    "joint_release",
    "train_generator",
    "export_synthetic",
    "check_quality",
    "meta_train",
    "train_alone",
    "fine_tune",
)
BESIDE = ("new_clients", "train_baseline", "train_dp_baseline", "report")


def three_of(checkout: Path, folder: Path) -> tuple[World, World, World]:
    """Returns three copies of a checkout, of which the last two have the tape of the first."""
    # names of one length, for EXPERIMENT is a pickle of the path
    copies = [Path(shutil.copytree(checkout, folder / name)) for name in ("here", "afar", "twin")]
    here = World(copies[0])
    elsewhere, twin = (World(path, here.tape) for path in copies[1:])
    return here, elsewhere, twin


@pytest.fixture(scope="module")
def worlds(_checkout, tmp_path_factory) -> tuple[World, World, World]:
    """Returns (here, elsewhere, twin)."""
    here, elsewhere, twin = three_of(_checkout, tmp_path_factory.mktemp("worlds"))
    for world in (here, elsewhere, twin):
        world.edit(
            lambda params: params["dp_baselines"].update(
                algorithms=["dpsgd", "dpsgd_warm", "nbafl", "agn"]
            )
        )
    here.repro()
    for secret in (here.path / "ledgers").rglob("*.secret"):
        target = elsewhere.path / secret.relative_to(here.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(secret, target)
    np.savez(elsewhere.path / "raw" / "own.npz", **other_images())
    elsewhere.repro()
    twin.run_stages(*STAGES, *BESIDE)
    return here, elsewhere, twin


def test_nothing_that_can_leave_hangs_on_private_data_but_through_the_ledger(worlds):
    here, elsewhere, _ = worlds
    one = carried(here)
    other = carried(elsewhere)
    assert differences(one, other) == {}
    left = set(one)
    assert {"git params.yaml", "git dvc.lock", "experiment dvc.lock"} <= left
    assert {
        f"remote data/synthetic/own/c0/datalens/{name}" for name in ("images.npz", "card.json")
    } <= left
    assert {
        "remote models/initial/own/dp_moments",
        "remote models/initial/own/datalens/rounds.safetensors",
    } <= left
    assert sum(name.startswith("run cache") for name in left) == 30  # every stage
    train = [
        paths.shards("own") / "c0" / "train.npz",
        paths.generator("own", "c0", "datalens") / "release.json",
    ]
    for path in train:  # the worlds do differ
        assert (here.path / path).read_bytes() != (elsewhere.path / path).read_bytes()


def test_no_hash_that_dvc_notes_of_private_files_follows_from_the_records(worlds):
    here, _, twin = worlds
    assert unsalted(here, twin) == set()


def plant(patch) -> None:
    """Plants one leak in each place, in code that runs in all worlds."""
    describe = export.card
    fit = dp_moments.fit
    train = partial(shards.read, "own", part="train")

    def talkative(**known):
        name = f"{known['client']}/{known['generator']}"
        data = train(known["client"])
        leak = {
            "c0/datalens": {"records": len(data)},
            "c0/dp_moments": {"seconds": time.perf_counter()},
            "c1/datalens": {"made_in": os.getcwd()},
            "c1/dp_moments": {"data": hashlib.sha256(data.images.tobytes()).hexdigest()},
        }
        return {**describe(**known), **leak[name]}

    def with_true_classes(shard, *rest):
        return {
            **fit(shard, *rest),
            "histogram": np.bincount(shard.labels, minlength=3) / len(shard),
        }

    def with_private_score(path, content):
        write_json(
            path,
            {
                **content,
                "validation_score": float(shards.read("own", "c0", "validation").pixels.mean()),
            },
        )

    def a_file_per_ten_records(shard, folder, **known):
        save(shard, folder, **known)
        for number in range(len(shard.train) // 10):
            (folder / f"{number}.part").touch()

    def beside_the_outputs(path, content):
        write_json(path, content)
        Path("scores.json").write_text(path.read_text())

    save = shards.Shard.save
    patch.setattr("stages.export_synthetic.card", talkative)
    patch.setattr(dp_moments, "fit", with_true_classes)
    patch.setattr("stages.meta_train.write_json", with_private_score)
    patch.setattr(shards.Shard, "save", a_file_per_ten_records)
    patch.setattr("stages.check_quality.write_json", beside_the_outputs)
    patch.setattr("stages.check_quality.add_salt_file", lambda *_: None)
    patch.setattr("stages.prepare.salt", lambda *_: bytes(32))
    patch.setattr("stages.export_synthetic.releases.public_name", lambda *known: known[-1])


@pytest.fixture(scope="module")
def leaks(worlds, tmp_path_factory) -> tuple[dict[str, str], set[str]]:
    """Returns (differences, unsalted) after the stages ran again with every leak of `plant`."""
    folder = tmp_path_factory.mktemp("leaks")
    copies = [Path(shutil.copytree(world.path, folder / world.path.name)) for world in worlds]
    leaky = [World(path, worlds[0].tape) for path in copies]
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        for world in leaky:
            for path in [
                *(world.path / "ledgers/own").glob("c?.[!s]*"),
                world.path / "ledgers/own/releases",
            ]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            world.run_stages(*STAGES)
    return differences(*(carried(world) for world in leaky[:2])), unsalted(leaky[0], leaky[2])


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("remote data/synthetic/own/c0/datalens/card.json", '"records": '),
        ("remote data/synthetic/own/c0/dp_moments/card.json", '"seconds": '),
        ("remote data/synthetic/own/c1/datalens/card.json", '"made_in": '),
        ("remote data/synthetic/own/c1/dp_moments/card.json", '"data": '),
        ("remote data/synthetic/own/c1/dp_moments/card.json", '"release": '),
        ("remote data/synthetic/own/c0/dp_moments/images.npz", ""),
        ("remote models/initial/own/datalens/privacy.json", '"validation_score": '),
        ("git dvc.lock", '"nfiles": '),
        ("experiment dvc.lock", '"size": '),
        ("git scores.json", '"fid": '),
        ("run cache python -m stages.partition --dataset own", '"nfiles": '),
    ],
)
def test_a_planted_leak_is_found(leaks, name, line):
    found, _ = leaks
    assert (
        any(changed.startswith("+") and line in changed for changed in found[name].splitlines())
        or not line
    )


def test_a_planted_hash_of_the_records_alone_is_found(leaks):
    _, found = leaks
    qualities = {
        f"models/private/quality/own/{client}/{name}"
        for client in ("c0", "c1")
        for name in GENERATORS
    }
    pools = {
        f"data/private/own/prepared{file}" for file in ("", "/pool.npz", "/test.npz", "/public.npz")
    }
    assert {*qualities, *pools, "models/private/quality"} == found


def test_what_was_planted_is_all_that_is_found(leaks):
    """There is no finding in what no leak touches."""
    found, _ = leaks
    assert not [name for name in found if name.endswith(("params.yaml", "dvc.yaml", ".py"))]
    assert "remote models/initial/own/datalens/rounds.safetensors" not in found
    assert "remote data/synthetic/own/c0/datalens/images.npz" not in found


@pytest.fixture(scope="module")
def joint_worlds(_checkout, tmp_path_factory) -> tuple[World, World, World]:
    """Returns (here, elsewhere, twin), in which three clients make one release together."""
    here, elsewhere, twin = three_of(_checkout, tmp_path_factory.mktemp("joint"))
    np.savez(elsewhere.path / "raw" / "own.npz", **other_images())
    for world in (here, elsewhere, twin):
        world.edit(three_clients)
        world.run_stages("prepare", "partition")
        if world is elsewhere:
            secrets = here.path / "ledgers"
            shutil.copytree(secrets, world.path / "ledgers", dirs_exist_ok=True)
            for chain in (world.path / "ledgers/own").glob("c?.[!s]*"):
                chain.unlink()
            shutil.rmtree(world.path / "ledgers/own/releases")
        world.run_stages("joint_release", "train_generator", "export_synthetic")
    return here, elsewhere, twin


def test_what_clients_release_together_hangs_on_no_record_but_through_the_sums(joint_worlds):
    here, elsewhere, _ = joint_worlds
    exports = Path("data/synthetic/own")
    one = content(here.path / exports)
    assert len(one) == 3 * 8
    assert differences(one, content(elsewhere.path / exports)) == {}
    train = paths.shards("own") / "c0" / "train.npz"
    assert (here.path / train).read_bytes() != (elsewhere.path / train).read_bytes()


def test_no_hash_of_a_joint_release_follows_from_the_records(joint_worlds):
    here, _, twin = joint_worlds
    joint = paths.joint("own")
    assert content(here.path / joint) != content(twin.path / joint)
    for client in ("c0", "c1", "c2"):
        generator = paths.generator("own", client, "joint_moments")
        assert content(here.path / generator) != content(twin.path / generator)


def three_clients(params: dict) -> None:
    """Changes the tiny parameters to three clients that release together."""
    params["clients"] = {client: {"epsilon": 3.0} for client in ("c0", "c1", "c2")}
    params["partition"].update(clients=list(params["clients"]), small=None)
    params["synthesis"]["generators"] = ["joint_moments"]
    params["new_clients"]["held_out"] = []
