import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipelines import paths
from pipelines.errors import UserError
from pipelines.files import read_csv, write_arrays, write_csv
from pipelines.reporting import collect

ROOT = Path(__file__).resolve().parents[3]


def test_the_methods_follow_the_parameters(run):
    names = [
        "pppfl/datalens",
        "pppfl/dp_moments",
        "local",
        "random_init",
        "fedavg/datalens",
        "fedavg/dp_moments",
    ]
    folders = collect.method_folders(run.params, "digits")
    assert list(folders) == [*names, "dpsgd"]
    assert folders["fedavg/datalens"] == paths.baseline("digits", "fedavg") / "fedavg-datalens"
    assert folders["pppfl/datalens"] == paths.personal("digits", "datalens") / "pppfl-datalens"
    assert folders["dpsgd"] == paths.dp_baseline("digits", "dpsgd") / "dpsgd"


def test_models_that_a_user_made_by_hand_are_left_out(run):
    """`meta_train --method fedavg`: the report shows this method's cell of train_baseline, once."""
    before = run.summary()
    pppfl = paths.personal("digits", "datalens")
    by_hand = paths.personal("digits", paths.of_method("datalens", "fedavg"))
    shutil.copytree(pppfl, by_hand)
    (by_hand / "pppfl-datalens").rename(by_hand / "fedavg-datalens")
    run.edit(
        by_hand / "fedavg-datalens" / "results.json",
        lambda content: content.update(method="fedavg/datalens", epsilon_max=99.0),
    )
    assert run.summary() == before


@pytest.mark.parametrize(
    "path",
    [
        paths.personal("digits", "datalens") / "pppfl-datalens" / "results.json",
        paths.baseline("digits", "local") / "local" / "rounds.csv",
        paths.baseline("digits", "fedavg") / "fedavg-datalens" / paths.CORRECT,
        paths.dp_baseline("digits", "dpsgd") / "dpsgd" / paths.COST,
        paths.quality("digits", "b", "dp_moments") / "quality.json",
        paths.new_clients("digits", "datalens") / "results.json",
        paths.synthetic("digits", "a", "datalens") / "card.json",
        paths.synthetic("digits", "a", "datalens") / "grid.png",
    ],
)
def test_a_missing_artifact_is_named_in_one_sentence(run, path):
    path.unlink()
    with pytest.raises(UserError, match=f"Could not read {path}") as error:
        run.read()
    assert "\n" not in str(error.value)


def test_results_of_another_roster_are_refused(run):
    path = paths.baseline("digits", "local") / "local" / "results.json"
    run.edit(path, lambda content: content["clients"].pop("b"))
    with pytest.raises(UserError, match=rf"{path} lacks 'b'"):
        run.read()


def test_methods_scored_on_other_images_are_refused(run):
    path = paths.baseline("digits", "local") / "local" / paths.CORRECT
    write_arrays(path, {"a": np.ones(100, bool), "b": np.ones(99, bool)})
    with pytest.raises(UserError, match=rf"{path} is of other test images than the other methods"):
        run.read()


def test_results_of_before_there_was_a_selected_round_are_refused(run):
    path = paths.baseline("digits", "local") / "local" / "results.json"
    run.edit(path, lambda content: content.pop("selected"))
    with pytest.raises(UserError, match=rf"{path} lacks 'selected'. Run the stage"):
        run.read()


def test_a_cell_of_a_new_client_without_its_draw_is_refused(run):
    path = paths.new_clients("digits", "datalens") / "results.json"
    run.edit(path, lambda content: content["cells"][3].pop("draw"))
    with pytest.raises(UserError, match=rf"{path} lacks 'draw'"):
        run.read()


def test_a_card_without_a_unit_is_refused(run):
    path = paths.synthetic("digits", "a", "datalens") / "card.json"
    run.edit(path, lambda content: content["privacy"].pop("unit"))
    with pytest.raises(UserError, match=rf"{path} lacks 'unit'"):
        run.read()


@pytest.mark.parametrize("cell", ["round", "accuracy_after"])
def test_a_last_round_with_a_gap_is_refused(run, cell):
    path = paths.baseline("digits", "local") / "local" / "rounds.csv"
    write_csv(path, [{**row, cell: ""} for row in read_csv(path)])
    with pytest.raises(UserError, match=f"{path} lacks '{cell}'"):
        run.read()


def test_a_cell_that_is_no_number_is_refused(run):
    path = paths.baseline("digits", "local") / "local" / "rounds.csv"
    path.write_text(path.read_text().replace("0.7", "high"))
    with pytest.raises(UserError, match="a cell is not a number"):
        run.read()


DAMAGES = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "without its end": lambda content: content[:-3],
    "zeros": lambda content: bytes(len(content)),
    "other bytes": lambda content: b"\xff\xfe\x00 no file of ours",
    "a number": lambda content: b"5\n",
    "an empty mapping": lambda content: b"{}\n",
    "a list": lambda content: b"[]\n",
    "nested deep": lambda content: b"[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_artifact_is_one_sentence_that_names_it(run, damage):
    """The test damages each file that the report reads, except the pictures, one after the other."""
    files = [path for path in Path().rglob("*") if path.suffix in (".json", ".csv", ".safetensors")]
    assert len(files) > 20
    for path in files:
        content = path.read_bytes()
        path.write_bytes(DAMAGES[damage](content))
        with pytest.raises(UserError, match=str(path)) as error:
            run.summary()
        assert "\n" not in str(error.value)
        path.write_bytes(content)
    run.summary()


def test_the_report_needs_no_torch():
    code = "import sys, stages.report; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
