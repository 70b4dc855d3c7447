"""Tests what a valid params.yaml resolves to: each client's budget, and each block under its
profile's overrides.

Invalid overrides are refused.
"""

import math

import parameter_files
import pytest
from project import ROOT
from shipped import changed, load, mistakes, shipped

from pipelines import config
from pipelines.config.dp import DP_BASELINES


def test_numbers_as_dvc_writes_them_are_numbers(tmp_path):
    """DVC writes 1e-05, which YAML 1.1 readers take for a string; `.inf` is the non-private mode."""
    parameter_files.copy_files(ROOT, tmp_path)
    path = tmp_path / "params.yaml"
    text = path.read_text()
    assert "delta: 1e-05" in text
    path.write_text(text.replace("c1: {epsilon: 3.0}", "c1: {epsilon: .inf}"))
    params = config.load(path)
    assert params.privacy.delta == 1e-5
    assert params.budget("c1") == (math.inf, 1e-5)


def test_a_client_s_own_delta_wins():
    params = load(shipped())
    assert params.budget("c0") == (10.0, 1e-6)
    assert params.budget("c1") == (3.0, params.privacy.delta)


def test_a_profile_overrides_the_generator_s_block():
    content = changed(("profiles", "digits", "synthesis", "datalens"), {"teachers": 5})
    settings = load(content).generator("digits", "datalens")
    assert settings.teachers == 5
    assert settings.steps == content["synthesis"]["datalens"]["steps"]


def test_a_bad_override_names_the_profile():
    (line,) = mistakes(changed(("profiles", "digits", "synthesis", "datalens"), {"teachers": 0}))
    assert "synthesis.datalens (profile digits)" in line and "Got 0 instead" in line


def test_a_profile_overrides_training_by_family_then_by_name():
    content = shipped()
    content["profiles"]["digits"]["training"] = {
        "federated": {"rounds": 3, "batch": 7},
        "fedprox": {"batch": 9},
        "meta": {"rounds": 2},
        "fine_tune": {"epochs": 1},
    }
    params = load(content)
    assert (
        params.training("digits", "scaffold").rounds,
        params.training("digits", "scaffold").batch,
    ) == (3, 7)
    prox = params.training("digits", "fedprox")
    assert (prox.rounds, prox.batch, prox.mu) == (3, 9, content["baselines"]["fedprox"]["mu"])
    assert [
        params.training("digits", name).rounds for name in ("meta", "fedmeta", "pppfl_real")
    ] == [2, 2, 2]
    assert params.training("digits", "fine_tune").epochs == 1
    assert params.training("digits", "pooled") == params.baselines.pooled
    assert params.training("my_npz", "scaffold") == params.baselines.scaffold


def test_an_override_of_the_family_leaves_what_makes_an_algorithm_what_it_is():
    content = shipped()
    content["profiles"]["digits"]["training"] = {
        "meta": {
            "rounds": 7,
            "outer_learning_rate": 0.5,
            "weights": "uniform",
            "ema": True,
            "cosine": True,
        }
    }
    params = load(content)
    paper, plain = (params.training("digits", name) for name in ("pppfl_paper", "fedmeta"))
    assert paper == params.baselines.pppfl_paper.model_copy(update={"rounds": 7})
    assert plain == params.baselines.fedmeta.model_copy(
        update={"rounds": 7, "outer_learning_rate": 0.5}
    )
    content["profiles"]["digits"]["training"]["pppfl_paper"] = {
        "outer_learning_rate": 0.1
    }  # named, it is meant
    assert load(content).training("digits", "pppfl_paper").outer_learning_rate == 0.1


def test_no_image_of_ones_own_is_public_unless_its_profile_says_so():
    content = shipped()
    content["prepare"]["public_fraction"] = 0.1
    for profile in content["profiles"].values():
        profile["public_fraction"] = None
    params = load(content)
    fractions = {dataset: params.public_fraction(dataset) for dataset in params.profiles}
    assert fractions == {
        dataset: 0.1 if profile.is_public else 0.0 for dataset, profile in params.profiles.items()
    }
    content["profiles"]["my_npz"]["public_fraction"] = 0.2
    assert load(content).public_fraction("my_npz") == 0.2


def test_on_own_images_what_looks_at_public_ones_is_left_out_and_not_refused():
    content = shipped()
    content["datasets"] = ["my_npz"]
    content["dp_baselines"]["algorithms"] = list(DP_BASELINES)
    params = load(content)
    left_out = {name for name in params.dp_baselines.algorithms if params.left_out("my_npz", name)}
    assert left_out == {"adap", "agn", "ali"}
    assert not any(params.left_out("digits", name) for name in params.dp_baselines.algorithms)
    content["profiles"]["my_npz"]["public_fraction"] = 0.2
    assert not any(load(content).left_out("my_npz", name) for name in left_out)


def test_on_a_public_data_set_it_is_refused():
    content = changed(("prepare", "public_fraction"), 0.0)
    content["dp_baselines"]["algorithms"] = ["adap"]
    assert "without images to validate on, prepare.public_fraction" in mistakes(content)[0]
    content["profiles"]["digits"]["public_fraction"] = 0.1
    load(content)


@pytest.mark.parametrize(
    "path, bad, said",
    [
        (
            ("profiles", "mnist", "training"),
            {"fedavgg": {}},
            "'training' parameter of profiles.mnist",
        ),
        (
            ("profiles", "mnist", "training"),
            {"fedprox": {"mu": -1.0}},
            "'mu' parameter of fedprox (profile mnist)",
        ),
        (
            ("profiles", "mnist", "training"),
            {"federated": {"mu": 1.0}},
            "'mu' parameter of fedavg (profile mnist)",
        ),
        (("baselines", "algorithms"), ["fedavgg"], "one of local, random_init, single"),
        (("baselines", "algorithms"), ["local", "local"], "a list of names, none twice"),
        (("dp_baselines", "algorithms"), ["dpsgd", "dpsgd"], "a list of names, none twice"),
        (("synthesis", "generators"), [], "a list of at least one name, none twice"),
        (("synthesis", "generators"), [{"a": 1}], "must be one of 'datalens'"),
        (("heads",), {}, "The 'scatter' parameter of heads"),
        (("baselines", "scaffold", "momentum"), 0.9, "a float in [0, 0]"),
        (
            ("new_clients", "held_out"),
            ["c9"],
            "parameter of new_clients must be a list of clients of ['c0', 'c1']",
        ),
        (("new_clients", "held_out"), ["c0", "c0"], "none twice"),
        (
            ("new_clients", "labels"),
            [16, 8],
            "'labels' parameter of new_clients must be a list of at least one",
        ),
        (("new_clients", "labels"), [8, 8], "rising"),
        (("new_clients", "labels"), [], "rising"),
        (
            ("new_clients", "labels"),
            [0, 8],
            "Item 1 of the list new_clients.labels must be an int in [1, 1e6]. Got 0",
        ),
        (("new_clients", "algorithms"), [], "at least one name"),
        (("new_clients", "algorithms"), ["pooled", "pooled"], "none twice"),
        (("new_clients", "algorithms"), ["fedavg_real"], "one of 'pppfl', 'random_init', 'pooled'"),
        (
            ("profiles", "mnist", "training"),
            {"new_clients": {"labels": [9, 8]}},
            "new_clients (profile mnist)",
        ),
        (
            ("profiles", "mnist", "training"),
            {"new_clients": {"draws": 0}},
            "new_clients (profile mnist)",
        ),
    ],
)
def test_training_that_cannot_be_is_one_sentence(path, bad, said):
    assert said in mistakes(changed(path, bad))[0]


def test_no_method_need_run_beside_pppfl():
    content = shipped()
    for block in ("baselines", "dp_baselines"):
        content[block]["algorithms"] = []
    params = load(content)
    assert params.baselines.algorithms == params.dp_baselines.algorithms == []


def test_a_single_client_cannot_be_held_out_and_need_not_be():
    content = shipped()
    del content["clients"]["c0"]
    assert "one must be left to train" in mistakes(content)[0]
    content["new_clients"]["held_out"] = []
    assert load(content).new_clients.held_out == []


def test_what_cannot_run_over_a_network_is_refused_before_anything_is_spent():
    content = shipped()
    content["federation"] |= {"engine": "nvflare", "mode": "local"}
    content["dp_baselines"]["algorithms"] = ["dpsgd", "dpsgd_warm"]
    assert (
        "The 'algorithms' parameter of dp_baselines must be a list without those that have a warm_start"
        in " ".join(mistakes(content))
    )
    content["dp_baselines"]["algorithms"] = ["dpsgd"]
    load(content)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("adap", {"rounds": 800}, "must be nearer to 1: over 800 rounds the noise would fall"),
        ("agn", {"noise_decay": 0.9, "rounds": 70}, "must be nearer to 1: over 70 rounds"),
        (
            "adap",
            {"local_steps_rule": "ratio"},
            "'noise_multiplier' parameter of dp_baselines.adap",
        ),
        ("ali", {"most_local_steps": 1}, "must be at least local_steps, 2"),
    ],
)
def test_noise_that_cannot_be_planned_is_one_sentence_and_given_noise_need_not_be(
    name, changes, said
):
    content = shipped()
    content["dp_baselines"]["algorithms"] = [name]
    content["prepare"]["public_fraction"] = 0.1
    content["dp_baselines"][name] |= changes
    assert said in mistakes(content)[0]
    content["dp_baselines"][name] |= {"noise_multiplier": 2.0, "most_local_steps": 100}
    load(content)


def joint() -> dict:
    """Returns the shipped content with a joint generator."""
    content = changed(("synthesis", "generators"), ["joint_moments"])
    content["new_clients"]["held_out"] = []
    return content


def test_half_of_the_clients_may_collude_unless_a_number_is_named():
    settings = load(joint()).generator("digits", "joint_moments")
    assert [settings.number_colluding(clients) for clients in (3, 5, 50)] == [1, 2, 25]
    content = joint()
    content["synthesis"]["joint_moments"]["colluding"] = 4
    settings = load(content).generator("digits", "joint_moments")
    assert [settings.number_colluding(clients) for clients in (1, 3, 5, 50)] == [0, 2, 4, 4]


@pytest.mark.parametrize("colluding", [0, -1, 2.5, True, "all", None])
def test_as_many_as_may_collude_is_half_or_a_number(colluding):
    content = joint()
    content["synthesis"]["joint_moments"]["colluding"] = colluding
    (line,) = mistakes(content)
    assert "colluding" in line and f"Got {colluding!r}" in line


def test_a_client_that_is_held_out_has_no_part_in_a_joint_release():
    content = joint()
    content["new_clients"]["held_out"] = ["c1"]
    (line,) = mistakes(content)
    assert "The 'held_out' parameter of new_clients (profile digits) must be []" in line


def test_a_joint_release_is_made_in_one_process():
    content = joint()
    content["federation"].update(engine="nvflare", mode="remote")
    (line,) = mistakes(content)
    assert "where federation.mode is 'remote'" in line


def test_trust_is_of_few_or_of_nobody():
    (line,) = mistakes(changed(("privacy", "trust"), "all"))
    assert "'t_of_k'" in line and "Got 'all'" in line
