"""`python -m pipelines.config show`: the settings of a method, and where each value comes from."""

import subprocess
import sys

import parameter_files
import pytest
from project import ENV, ROOT

from pipelines.config import show
from pipelines.config.checks import METHODS
from pipelines.config.files import assemble
from pipelines.config.generators import GENERATORS
from pipelines.config.params import checked


@pytest.fixture(scope="module")
def shown():
    """Returns {setting: (value, origin)} of a method, as it is printed."""
    files = assemble(ROOT / "params.yaml")
    params = checked(files)

    def read(dataset: str, method: str) -> dict[str, tuple[str, str]]:
        found = {}
        for line in show.lines(files, params, dataset, method):
            text, _, origin = line.partition("  # ")
            name, _, value = text.strip().partition(": ")
            found[name] = (value, origin)
        return found

    return read


@pytest.mark.parametrize(
    ("dataset", "method", "setting", "value", "origin"),
    [
        ("digits", "pppfl", "rounds", "30", "params.yaml meta"),
        ("digits", "meta", "rho", "10.0", "settings/training.yaml meta"),
        ("digits", "fedmeta", "rounds", "30", "params.yaml meta, the base of fedmeta"),
        ("digits", "fedmeta", "weights", "size_of_set", "settings/training.yaml baselines.fedmeta"),
        (
            "mnist",
            "fedmeta",
            "outer_learning_rate",
            "0.003",
            "settings/training.yaml networks.cnn.fedmeta",
        ),
        (
            "cifar100",
            "fedmeta",
            "outer_learning_rate",
            "0.003",
            "settings/training.yaml networks.cnn.fedmeta, the base of resnet",
        ),
        ("mnist", "fine_tune", "epochs", "10", "profiles/mnist.yaml training.fine_tune"),
        ("mnist", "scaffold", "batch", "64", "profiles/mnist.yaml training.federated"),
        (
            "mnist",
            "ali",
            "momentum",
            "0.8",
            "profiles/mnist.yaml training.dpsgd, the base of ali",
        ),
        (
            "digits",
            "dp_teacher",
            "low_epsilon.first_share",
            "0.8",
            "profiles/digits.yaml synthesis.dp_moments, the base of dp_teacher",
        ),
        ("digits", "gan", "latent", "16", "settings/generators.yaml synthesis.gan"),
        ("digits", "new_clients", "draws", "5", "settings/training.yaml new_clients"),
    ],
)
def test_a_value_is_shown_with_its_file_and_block(shown, dataset, method, setting, value, origin):
    assert shown(dataset, method)[setting] == (value, origin)


def test_a_value_that_no_file_names_is_the_codes(tmp_path):
    parameter_files.copy_files(ROOT, tmp_path)
    whole = parameter_files.read(tmp_path)
    del whole["meta"]["zeta"]
    parameter_files.write(tmp_path, whole)
    files = assemble(tmp_path / "params.yaml")
    lines = show.lines(files, checked(files), "digits", "pppfl")
    (line,) = [line for line in lines if line.startswith("zeta")]
    assert line.split("  #") == [line.split("  #")[0], " default in the code"] and "1.0" in line


@pytest.mark.parametrize("dataset", ["digits", "mnist", "my_folder"])
def test_every_method_of_every_data_set_can_be_shown(shown, dataset):
    files = assemble(ROOT / "params.yaml")
    params = checked(files)
    for name in (*METHODS, *GENERATORS):
        find = params.generator if name in GENERATORS else params.training
        names = {key.partition(".")[0] for key in shown(dataset, name)}
        assert set(find(dataset, name).model_dump()) <= names | set(), name


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("digit", "pppfl"), "Error: The data set must be one of breast, "),
        (("digits", "ppfl"), "Error: The method must be one of meta, fine_tune, "),
    ],
)
def test_what_is_not_there_is_one_sentence(arguments, said):
    command = [sys.executable, "-m", "pipelines.config", "show", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=ENV, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(said) and f"Got '{arguments[said.count('method')]}' instead." in line
