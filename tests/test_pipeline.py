"""Tests real `dvc repro` runs at tiny size: what re-runs, what does not, and what can leave."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from project import CANARY
from ruamel.yaml import YAML

from pipelines import config
from pipelines.federation.home import personal
from pipelines.files import read_arrays
from pipelines.guard import checks, uploads

PARENTS = {
    f"models/private/{name}"
    for name in ("quality", "personal", "baselines", "dp_baselines", "new_clients")
}

pytestmark = pytest.mark.pipeline


def contains_canary(blob: bytes) -> bool:
    return CANARY in blob


def test_the_first_run_makes_everything(built):
    summary = json.loads((built.path / "reports/own/summary.json").read_text())
    assert {
        "pppfl/datalens",
        "pppfl/dp_moments",
        "fedavg/dp_moments",
        "random_init",
        "dpsgd",
    } <= set(summary["methods"])
    assert set(summary["clients"]) == {"c0", "c1"}
    assert (built.path / "reports/index.html").exists()
    assert set(summary["new_clients"]) == {"datalens", "dp_moments"}
    newcomers = json.loads(
        (built.path / "models/private/new_clients/own/dp_moments/results.json").read_text()
    )
    cells = {(cell["algorithm"], cell["client"], cell["labels"]) for cell in newcomers["cells"]}
    assert cells == {
        (algorithm, "c0", labels) for algorithm in ("pppfl", "random_init") for labels in (0, 4, 8)
    }
    for generator in ("datalens", "dp_moments"):
        folder = built.path / "data/synthetic/own/c0" / generator
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert {path.relative_to(folder).as_posix() for path in files} == set(uploads.EXPORT)
        for line in (folder / "SHA256SUMS").read_text().splitlines():
            digest, name = line.split()
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
        assert len(np.load(folder / "images.npz")["labels"]) == 60


def test_dvc_shows_no_score_of_own_images(built):
    """DVC puts these files into the Git commit of each experiment."""
    folder = built.path / "scores/own"
    assert json.loads((folder / "metrics.json").read_text()) == {}
    header, empty = (folder / "rounds.csv").read_text().splitlines()
    assert header.startswith("round,") and set(empty) == {","}
    assert {path.name for path in folder.iterdir()} == {"metrics.json", "rounds.csv"}


def test_what_a_clock_says_stays_at_home(built):
    """Seconds differ between runs of one seed: they may stand in no file that leaves, and beside no
    result.
    """
    costs = {str(path.relative_to(built.path)) for path in built.path.rglob("cost.json")}
    assert {
        f"models/private/costs/own/{name}/cost.json" for name in ("datalens", "dp_moments")
    } <= costs
    assert all(path.startswith(("models/private/", "data/private/", "ledgers/")) for path in costs)
    read = {path: json.loads((built.path / path).read_text()) for path in costs}
    assert read["models/private/personal/own/dp_moments/pppfl-dp_moments/cost.json"]["rounds"] == 2
    assert read["models/private/dp_baselines/own/dpsgd/dpsgd/cost.json"]["seconds"] > 0
    weights = 4 * (64 * 64 + 64 + 64 * 3 + 3)  # the mlp for 8x8 images of three classes
    # the server trains alone: each set goes up once, and the model comes back
    cost = read["models/private/costs/own/datalens/cost.json"]
    assert (cost["bytes_up"], cost["bytes_down"]) == (2 * 60 * 64, 2 * weights)


def test_a_second_repro_runs_nothing(built):
    assert built.repro() == []


def test_one_clients_epsilon_reruns_its_generators_and_what_follows_and_going_back_runs_nothing(
    built,
):
    built.edit(lambda params: params["clients"]["c1"].update(epsilon=4.0))
    ran = built.repro()
    cells = {f"own-c1-{generator}" for generator in ("datalens", "dp_moments")}
    assert {name for name in ran if name.startswith(("prepare", "partition"))} == set()
    for stage in ("train_generator", "export_synthetic", "check_quality"):
        assert {name for name in ran if name.startswith(stage)} == {
            f"{stage}@{cell}" for cell in cells
        }
    for stage in ("meta_train", "fine_tune"):
        assert {f"{stage}@own-datalens", f"{stage}@own-dp_moments"} <= set(ran)
    assert ran[-2:] == ["report", "scores@own"]
    built.edit(lambda params: params["clients"]["c1"].update(epsilon=3.0))
    assert built.repro() == []


def test_no_method_need_run_beside_pppfl(built):
    def nothing_beside(params):
        for block in ("baselines", "dp_baselines"):
            params[block]["algorithms"] = []

    built.edit(nothing_beside)
    for name in ("baselines", "dp_baselines"):
        shutil.rmtree(built.path / "models/private" / name)
    assert built.repro() == ["report", "scores@own"]
    summary = json.loads((built.path / "reports/own/summary.json").read_text())
    assert set(summary["methods"]) == {"pppfl/datalens", "pppfl/dp_moments"}


@pytest.mark.slow
def test_changing_meta_reruns_no_generator(built):
    built.edit(lambda params: params["meta"].update(inner_steps=2))
    ran = {name.split("@")[0] for name in built.repro()}
    # some baselines have `meta` as their base, and DVC cannot tell which
    after = {"report", "scores"}
    assert ran == {"meta_train", "fine_tune", "train_baseline", "new_clients", *after}


def test_a_profile_of_another_data_set_and_how_long_to_wait_rerun_nothing(built):
    built.edit(lambda params: params["profiles"]["mnist"].update(images=5, classifier="mlp"))
    built.edit(lambda params: params["federation"].update(reply_timeout=60.0))
    assert built.repro() == []


def test_one_knob_of_the_profile_reruns_what_reads_it_alone(built):
    built.edit(lambda params: params["profiles"]["own"].update(licence="another"))
    ran = {name.split("@")[0] for name in built.repro("export_synthetic")}
    assert ran == {"export_synthetic"}


def test_dvc_sets_a_knob_of_any_file_and_runs_what_reads_it(built):
    """`dvc exp run -S`, in params.yaml by the knob's own name, elsewhere with the file's."""
    built.dvc(
        "exp", "run", "-S", "meta.rounds=1", "-S", "profiles/own.yaml:images=50", "prepare@own"
    )
    assert config.load(built.path / "params.yaml").training("own", "fedmeta").rounds == 1
    assert config.load(built.path / "params.yaml").profiles["own"].images == 50
    stale = json.loads(built.dvc("status", "--json").stdout)
    cells = {name.partition("@")[0] for name in stale}
    assert "export_synthetic" in cells and not cells & {"prepare", "partition", "train_generator"}


def test_nothing_private_reaches_a_remote(built, tmp_path):
    remote = tmp_path / "remote"
    built.dvc("remote", "add", "-d", "here", str(remote))
    built.dvc("push", "--run-cache")
    blobs = [path for path in remote.rglob("*") if path.is_file()]
    assert len(blobs) > 10  # the exports went there: the check below is not vacuous
    assert not [path for path in blobs if contains_canary(path.read_bytes())]
    assert not private_hashes(built) & {
        hashlib.md5(path.read_bytes()).hexdigest() for path in blobs
    }
    private = list((built.path / "data/private").rglob("train.npz"))
    assert private
    assert all(
        contains_canary(path.read_bytes()) for path in private
    )  # and the canary is where it should be


def secrets_at_home(project) -> dict[str, bytes]:
    """Returns the bytes of each personal model's class shares and weights, by where they stand."""
    secrets = {}
    for path in sorted((project.path / "models/private").rglob("c?.safetensors")):
        for name, array in read_arrays(path).items():
            # a read-out that adds nothing is no secret
            if array.size > 1 and array.any():
                secrets[f"{path.relative_to(project.path)} {name}"] = array.tobytes()
    return secrets


def test_personal_models_and_class_shares_stay_at_home(built, tmp_path):
    secrets = secrets_at_home(built)
    priors = [place for place in secrets if place.endswith(personal.AT_HOME)]
    assert any("personal/own/dp_moments/pppfl-dp_moments/c0" in place for place in priors)
    remote = tmp_path / "remote"
    built.dvc("remote", "add", "-d", "-f", "homes", str(remote))
    built.dvc("push", "--run-cache")
    built.dvc("remote", "remove", "homes")
    leaving = {str(path): path.read_bytes() for path in remote.rglob("*") if path.is_file()}
    for folder in ("models/initial", "data/synthetic"):
        for path in (built.path / folder).rglob("*"):
            if path.is_file():
                leaving[str(path)] = path.read_bytes()
    leaving |= staged_blobs(built)
    assert len(leaving) > 30
    for where, blob in leaving.items():
        assert not [place for place, secret in secrets.items() if secret in blob], where
    # the scan finds them where they are
    place = priors[0]
    assert secrets[place] in (built.path / place.split()[0]).read_bytes()


def private_hashes(project) -> set[str]:
    """Returns the hash of every private file that this run made."""
    folders = ("data/private", "models/private", "reports", "ledgers", "raw")
    files = [
        path for folder in folders for path in (project.path / folder).rglob("*") if path.is_file()
    ]
    assert len(files) > 20
    return {
        hashlib.md5(path.read_bytes()).hexdigest() for path in files if path.name != "README.md"
    }


def test_what_dvc_notes_of_private_files_confirms_no_guess_and_tells_no_number(built):
    """Hashes and sizes stand in dvc.lock and in the run cache: both follow a secret, and sizes are
    powers of two.
    """
    lock = YAML(typ="safe").load((built.path / "dvc.lock").read_text())
    noted = {}
    for stage in lock["stages"].values():
        for entry in [*stage.get("outs", []), *stage.get("deps", [])]:
            if entry["path"].startswith(("data/private", "models/private", "reports", "raw")):
                noted[entry["path"]] = entry
    assert len(noted) > 15
    for path, entry in noted.items():
        folder = built.path / path
        if folder.is_dir() and path not in PARENTS:
            files = [file for file in folder.rglob("*") if file.is_file()]
            assert any(file.name == "salt" or file.suffix == ".npz" for file in files), path
        if path not in PARENTS:
            assert entry["size"] % (1 << 16) == 0, path


def staged_blobs(project) -> dict[str, bytes]:
    project.git("add", "-A")
    names = project.git("diff", "--cached", "--name-only").splitlines()
    return {
        name: (project.path / name).read_bytes()
        for name in names
        if (project.path / name).is_file()
    }


def test_git_add_carries_nothing_private(built):
    assert not [name for name, blob in staged_blobs(built).items() if contains_canary(blob)]
    tracked = built.git("ls-files").splitlines()
    assert not [
        name
        for name in tracked
        if name.startswith(("data/", "models/private", "reports/", "raw/own"))
    ]


def test_nothing_private_leaves_after_a_stage_failed(checkout, tmp_path):
    checkout.edit(
        lambda params: params["profiles"]["own"]["synthesis"]["datalens"].update(weak_plan="refuse")
    )
    done = checkout.dvc("repro", "train_generator", ok=False)
    assert done.returncode != 0
    assert (checkout.path / "data/private/own/clients/c0/train.npz").exists()
    blobs = staged_blobs(checkout)
    assert not [name for name, blob in blobs.items() if contains_canary(blob)]
    assert not [name for name in blobs if name.startswith(("data/", "models/private"))]
    remote = tmp_path / "remote"
    checkout.dvc("remote", "add", "-d", "here", str(remote))
    checkout.dvc("push", "--run-cache", ok=False)  # there may be nothing that it may push
    assert not [
        path for path in remote.rglob("*") if path.is_file() and contains_canary(path.read_bytes())
    ]


def test_the_guard_passes_and_catches_what_it_is_for(built):
    assert checks.problems(built.path) == []
    graph = built.path / "dvc.yaml"
    whole = graph.read_text()
    graph.write_text(whole.replace("clients: {push: false}", "clients", 1))
    assert any(
        "data/private/own/clients" in line and "push" in line
        for line in checks.problems(built.path)
    )
    graph.write_text(
        whole.replace("- reports: {push: false}", "- reports: {push: false, cache: false}")
    )
    assert any("cache: false" in line for line in checks.problems(built.path))
    graph.write_text(whole)
    built.git("add", "-f", "data/private/own/clients/c0/train.npz")
    assert any("tracked by Git" in line for line in checks.problems(built.path))
    built.git("rm", "-q", "--cached", "data/private/own/clients/c0/train.npz")
    (built.path / ".gitignore").write_text("*.pyc\n")
    assert any(".gitignore misses it" in line for line in checks.problems(built.path))


def test_the_guard_names_what_dvc_would_upload_without_a_guarantee(built):
    """The guard reads dvc.lock, also when the workspace's copy is gone."""
    built.edit(lambda params: params["clients"]["c1"].update(epsilon=float("inf")))
    built.repro("meta_train@own-dp_moments")
    for _ in range(2):
        found = checks.problems(built.path)
        assert any(
            line.startswith("data/synthetic/own/c1/dp_moments has no privacy guarantee")
            for line in found
        )
        assert any(
            line.startswith("models/initial/own/dp_moments has no privacy guarantee")
            for line in found
        )
        assert not any("own/c0" in line for line in found)
        shutil.rmtree(built.path / "data/synthetic", ignore_errors=True)
