"""One set of settings from several files: which stands where, what wins, and what begins from what."""

import warnings
from pathlib import Path

import parameter_files
import pytest
from dvc.utils.hydra import apply_overrides
from project import ROOT

from pipelines import config
from pipelines.config import all_methods
from pipelines.config.bases import with_bases
from pipelines.config.files import assemble
from pipelines.config.places import SETTINGS
from pipelines.errors import UserError


@pytest.fixture
def folder(tmp_path) -> Path:
    parameter_files.copy_files(ROOT, tmp_path)
    return tmp_path


def load(folder: Path) -> config.Params:
    return config.load(folder / "params.yaml")


def changed(folder: Path, file: str, old: str, new: str) -> None:
    """Replaces one text of a file."""
    text = (folder / file).read_text()
    assert text.count(old) == 1, (file, old, text.count(old))
    (folder / file).write_text(text.replace(old, new))


def refused(folder: Path) -> str:
    """Returns the one sentence that is said of the files."""
    with pytest.raises(UserError) as error:
        load(folder)
    assert len(str(error.value).splitlines()) == 1, str(error.value)
    return str(error.value).replace(f"{folder}/", "")


def test_params_yaml_wins_over_settings_knob_by_knob(folder):
    changed(folder, "params.yaml", "  rounds: 30  ", "  rounds: 7\n  inner_steps: 2")
    params = load(folder)
    assert (params.meta.rounds, params.meta.inner_steps, params.meta.batch) == (7, 2, 64)


def test_what_has_a_base_follows_it_wherever_the_value_stands(folder):
    changed(folder, "params.yaml", "  rounds: 30  ", "  rounds: 7")
    changed(folder, "settings/training.yaml", "  rho: 10.0", "  rho: 3.0")
    params = load(folder)
    for name in ("fedmeta", "pppfl_paper", "pppfl_real"):
        block = getattr(params.baselines, name)
        assert (block.rounds, block.rho) == (7, 3.0), name
    assert params.baselines.pppfl_paper.ema and not params.baselines.fedmeta.ema  # their own
    assert params.baselines.fedavg.rounds == 30


def test_dvc_changes_the_one_line_that_a_hand_would(folder):
    """`dvc exp run -S meta.rounds=10`, as DVC writes it."""
    before = (folder / "params.yaml").read_text()
    apply_overrides(folder / "params.yaml", ["meta.rounds=10"])
    after = (folder / "params.yaml").read_text()
    assert after == before.replace("  rounds: 30  ", "  rounds: 10  ")
    changed_lines = [
        pair
        for pair in zip(before.splitlines(), after.splitlines(), strict=True)
        if len(set(pair)) > 1
    ]
    assert len(changed_lines) == 1
    assert load(folder).training("digits", "fedmeta").rounds == 10


@pytest.mark.parametrize(
    "override", ["clients.c1.epsilon=1.0", "privacy.delta=1e-06", "device=cpu", "seed=8"]
)
def test_dvc_rewrites_nothing_of_params_yaml_but_the_value(folder, override):
    before = (folder / "params.yaml").read_text().splitlines()
    apply_overrides(folder / "params.yaml", [override])
    after = (folder / "params.yaml").read_text().splitlines()
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


MISPLACED = [
    ("params.yaml", "networks: {}", "The 'networks' parameter belongs in settings/training.yaml"),
    ("params.yaml", "profiles: {}", "The 'profiles' parameter is not for params.yaml"),
    ("params.yaml", "mete: {}", "The 'mete' parameter is unknown, did you mean 'meta'?"),
    (
        "settings/dp.yaml",
        "seed: 3",
        "The 'seed' parameter is unknown, here stand dp_baselines, heads.",
    ),
    ("settings/dp.yaml", "meta: {}", "The 'meta' parameter belongs in settings/training.yaml"),
    ("settings/dp.yaml", "dp_baseline: {}", "did you mean 'dp_baselines'?"),
    ("settings/training.yaml", "profiles: {}", "'profiles' parameter is not for settings/training"),
    ("profiles/digits.yaml", "labels: 3", "The 'labels' parameter of profiles.digits is unknown"),
]


@pytest.mark.parametrize(("file", "line", "said"), MISPLACED)
def test_a_block_in_a_file_where_it_does_not_belong_is_one_sentence(folder, file, line, said):
    """DVC would not look for it there, and serve a stale run."""
    path = folder / file
    path.write_text(f"{path.read_text()}{line}\n")
    sentence = refused(folder)
    assert said in sentence and sentence.endswith(f"({file})")


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "params.yaml",
            "training.yaml has all\n  algorithms:",
            "training.yaml has all\n  fedavg: {rounds: 3}\n  algorithms:",
            "The 'fedavg' parameter of baselines belongs in settings/training.yaml",
        ),
        (
            "settings/dp.yaml",
            "dp_baselines:\n",
            "dp_baselines:\n  algorithms: [dpsgd]\n",
            "The 'algorithms' parameter of dp_baselines belongs in params.yaml",
        ),
        (
            "settings/training.yaml",
            "  rho: 10.0",
            "  rhoo: 10.0",
            "The 'rhoo' parameter of meta is unknown, did you mean 'rho'?",
        ),
        (
            "params.yaml",
            "  rounds: 30  ",
            "  rounds: 0  ",
            "The 'rounds' parameter of meta must be an int in [1, 1e6]. Got 0 instead.",
        ),
        (
            "settings/training.yaml",
            "  cycles: 1",
            "  cycles: 0",
            "The 'cycles' parameter of meta must be an int in [1, 1e6]. Got 0 instead.",
        ),
        (
            "params.yaml",
            "  - c1\n  - c2\nsynthesis",
            "  - c9\nsynthesis",
            "The 'held_out' parameter of new_clients must be a list of clients",
        ),
        (
            "settings/dp.yaml",
            "    rounds: 60\n    local_steps: 1\n    noise_control: falling_loss\n    noise_decay: 0.99",
            "    noise_control: falling_loss\n    noise_decay: 0.5",
            "The 'noise_decay' parameter of dp_baselines.adap (profile digits) must be at least 0.9",
        ),
        (
            "profiles/mnist.yaml",
            "    learning_rate: 2.0",
            "    learning_rate: -2.0",
            "The 'learning_rate' parameter of dpsgd (profile mnist) must be a float in",
        ),
    ],
)
def test_a_mistake_names_the_file_in_which_the_value_stands(folder, file, old, new, said):
    all_methods.write(folder / "params.yaml")
    changed(folder, file, old, new)
    with pytest.raises(UserError) as error:
        load(folder)
    lines = str(error.value).splitlines()
    assert any(said in line for line in lines) and all(
        line.endswith(f"({file})") for line in lines
    ), lines


@pytest.mark.parametrize("file", [*SETTINGS, "profiles/mnist.yaml"])
def test_a_file_that_is_no_yaml_or_says_a_thing_twice_is_one_sentence(folder, file):
    whole = (folder / file).read_text()
    for text, said in (
        ("a: [1", "is not valid YAML"),
        ("a: 1\na: 2", "duplicate key"),
        ("", "is empty"),
    ):
        (folder / file).write_text(text)
        assert refused(folder).startswith(file) and said in refused(folder)
    (folder / file).write_text(whole)
    load(folder)


def test_a_missing_file_is_one_sentence(folder):
    (folder / "profiles/digits.yaml").unlink()
    said = "The 'datasets' parameter must be a name that has a file in 'profiles', NAME.yaml."
    assert refused(folder) == f"{said} Got 'digits' instead. (params.yaml)"
    (folder / "settings/dp.yaml").unlink()
    said = (
        "Could not read settings/dp.yaml: No such file or directory. Run from the project's root."
    )
    assert refused(folder) == said


@pytest.mark.parametrize("of_profile", [False, True])
def test_newcomers_beside_a_joint_release_are_refused_where_they_are_named(folder, of_profile):
    whole = parameter_files.read(folder)
    whole["synthesis"]["generators"] = ["joint_moments"]
    whole["new_clients"]["held_out"] = [] if of_profile else ["c0"]
    if of_profile:
        whole["profiles"]["digits"]["training"]["new_clients"] = {"held_out": ["c0"]}
    parameter_files.write(folder, whole)
    said = refused(folder)
    assert said.startswith("The 'held_out' parameter of new_clients (profile digits) must be []")
    assert said.endswith(f"({'profiles/digits.yaml' if of_profile else 'params.yaml'})")


BASES = {
    "fedprox": ("{base: fedavgg, mu: 0.1}", "must be another block, of fedavg"),
    "fednova": ("{base: }", "must be another block, of fedavg"),
    "scaffold": ("{base: scaffold}", "lead back (scaffold -> scaffold). Got 'scaffold'"),
    "reptile": ("{base: [fedavg]}", "must be another block, of fedavg"),
}


@pytest.mark.parametrize("name", BASES)
def test_a_base_that_is_none_is_one_sentence(folder, name):
    block, said = BASES[name]
    whole = parameter_files.read(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ruamel.yaml import YAML

        whole["baselines"][name] = YAML(typ="safe").load(block)
    parameter_files.write(folder, whole)
    sentence = refused(folder)
    assert sentence.startswith(f"The 'base' parameter of baselines.{name} must be")
    assert said in sentence and sentence.endswith("(settings/training.yaml)")


def test_bases_that_lead_back_are_one_sentence_that_shows_the_way():
    blocks = {"a": {"base": "b"}, "b": {"base": "c"}, "c": {"base": "a"}}
    with pytest.raises(
        UserError, match=r"'base' parameter of g\.c .* \(a -> b -> c -> a\)\. Got 'a'"
    ):
        with_bases(blocks, ("g",), {}, lambda heir, base: None)


def test_a_base_of_a_base_is_followed_and_what_is_named_wins():
    blocks = {"a": {"x": 1, "y": {"z": 1}}, "b": {"base": "a", "x": 2}, "c": {"base": "b", "w": 3}}
    from_base = {}
    found = with_bases(blocks, ("g",), {}, from_base.__setitem__)
    assert found["c"] == {"x": 2, "y": {"z": 1}, "w": 3} and found["b"]["x"] == 2
    assert blocks["c"] == {"base": "b", "w": 3}  # what was read is left as it is
    assert from_base[("g", "c", "x")] == ("g", "b", "x")
    assert from_base[("g", "c", "y")] == ("g", "b", "y")


def test_every_value_has_a_source(folder):
    files = assemble(folder / "params.yaml")
    sources = {
        ("meta", "rounds"): "params.yaml",
        ("meta", "rho"): "settings/training.yaml",
        ("baselines", "fedmeta", "rounds"): "params.yaml",
        ("baselines", "algorithms"): "params.yaml",
        ("synthesis", "dp_teacher", "low_epsilon", "below"): "settings/generators.yaml",
        ("networks", "abadi", "fedmeta", "outer_learning_rate"): "settings/training.yaml",
        ("profiles", "mnist", "training", "ali", "momentum"): "profiles/mnist.yaml",
        ("clients", "c0", "epsilon"): "params.yaml",
        ("new_clients", "held_out"): "params.yaml",
        ("new_clients", "draws"): "settings/training.yaml",
    }
    assert {path: files.file(path) for path in sources} == sources
    assert files.source(("baselines", "fedmeta", "rounds")) == ("meta", "rounds")
    path = ("profiles", "mnist", "training", "ali", "momentum")
    assert files.source(path) == ("profiles", "mnist", "training", "dpsgd", "momentum")
