"""Tests what a valid params.yaml resolves to: each client's budget, and each block under its
profile's overrides.

Invalid overrides are refused.
"""

import math
from typing import get_args

import parameter_files
import pytest
from project import ROOT
from shipped import changed, load, mistakes, shipped

from pipelines import config
from pipelines.config.data import Network
from pipelines.config.dp import DP_BASELINES

# a frozen network, as a profile names it
LITE = {"network": "efficientnet_lite0", "side": 96}


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


def outer_rates(content, dataset: str) -> dict[str, float]:
    params = load(content)
    names = ("meta", "fedmeta", "pppfl_real", "pppfl_paper", "reptile")
    return {name: params.training(dataset, name).outer_learning_rate for name in names}


def test_every_shipped_profile_trains_at_a_rate_that_its_network_survives():
    """This includes the user's own data sets.

    Their templates name no rate, and convolutions die at the mlp's.
    """
    mlp, convolutions = 0.03, 3e-3
    own = {"meta": 3e-4, "pppfl_real": 3e-4, "pppfl_paper": 3e-4, "reptile": 1.0}
    for dataset, profile in shipped()["profiles"].items():
        rate = mlp if profile["classifier"] == "mlp" else convolutions
        assert outer_rates(shipped(), dataset) == {
            "fedmeta": rate,
            **own,
        }
        noisy = 0.01 if profile["classifier"] == "mlp" else 2e-3
        assert [
            load(shipped()).training(dataset, name).learning_rate for name in ("adap", "agn")
        ] == [noisy, noisy]


@pytest.mark.parametrize("classifier", get_args(Network))
def test_the_rate_follows_the_network_and_not_the_data_set(classifier):
    content = changed(("profiles", "my_npz", "classifier"), classifier)
    content["profiles"]["my_npz"]["encoder"] = LITE
    rate = {"mlp": 0.03, "scatter": 0.1, "encoder": 0.1}.get(classifier, 3e-3)
    assert outer_rates(content, "my_npz")["fedmeta"] == rate
    content["profiles"]["my_npz"]["training"] = {
        "meta": {"outer_learning_rate": 0.5}
    }  # its own wins
    assert outer_rates(content, "my_npz")["meta"] == 0.5
    assert outer_rates(content, "my_npz")["pppfl_paper"] == 3e-4


@pytest.mark.parametrize(
    "path, bad, said",
    [
        (("networks", "vgg"), {}, "The 'vgg' parameter of networks must be one of 'mlp', 'cnn'"),
        (
            ("networks", "cnn"),
            {"fedavgg": {}},
            "The 'cnn' parameter of networks must be of meta, fine_tune",
        ),
        (
            ("networks", "abadi"),
            {"fedprox": {"mu": -1.0}},
            "'mu' parameter of fedprox (network abadi)",
        ),
        (("networks", "cnn", "meta"), 3, "must be a"),
    ],
)
def test_settings_of_a_network_that_cannot_be_are_one_sentence(path, bad, said):
    assert said in mistakes(changed(path, bad))[0]


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
        (("baselines", "algorithms"), ["fedavgg"], "a list of local, random_init, single"),
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


def test_a_single_client_cannot_be_held_out_and_need_not_be():
    content = shipped()
    del content["clients"]["c0"]
    assert "one must be left to train" in mistakes(content)[0]
    content["new_clients"]["held_out"] = []
    assert load(content).new_clients.held_out == []


@pytest.mark.parametrize("name", ["dpsgd", "nbafl"])
def test_a_network_without_the_activation_is_refused(name):
    content = shipped()
    content["dp_baselines"]["algorithms"] = [name]
    content["dp_baselines"][name] |= {"network": "resnet", "activation": "tanh"}
    assert (
        f"of dp_baselines.{name} (profile digits) must be 'relu' where the network is resnet"
        in mistakes(content)[0]
    )
    content["dp_baselines"][name]["activation"] = "relu"
    load(content)


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


def test_scatter_is_refused_for_large_images():
    content = changed(("profiles", "my_npz", "classifier"), "scatter")
    content["profiles"]["my_npz"]["shape"] = [64, 65, 1]
    (line,) = mistakes(content)
    assert "parameter of profiles.my_npz must be another for images above 64x64" in line
    content["profiles"]["my_npz"]["shape"] = [64, 64, 3]
    load(content)


def test_scatter_is_refused_for_images_of_many_channels():
    content = changed(("profiles", "my_npz", "classifier"), "scatter")
    content["profiles"]["my_npz"]["shape"] = [28, 28, 5]
    (line,) = mistakes(content)
    assert "must be another for images of more than 4 channels" in line


def test_scatter_has_no_activation_to_choose():
    content = changed(("profiles", "digits", "classifier"), "scatter")
    content["dp_baselines"]["algorithms"] = ["dpsgd"]
    load(content)
    content["profiles"]["digits"]["training"] = {"dpsgd": {"activation": "tanh"}}
    (line,) = mistakes(content)
    assert "'relu' where the network is scatter" in line


def test_a_generator_has_its_own_networks():
    content = changed(("synthesis", "dp_teacher", "classifier"), "scatter")
    assert any("must be one of 'mlp' or 'cnn'" in line for line in mistakes(content))


def test_a_head_that_makes_no_images_is_no_generator_of_a_run():
    content = changed(("synthesis", "generators"), ["dp_head"])
    load(content)
    content["synthesis"]["dp_head"]["head_share"] = 1.0
    (sentence,) = mistakes(content)
    assert "'head_share' parameter of synthesis.dp_head" in sentence
    assert "below 1 for one of synthesis.generators" in sentence


@pytest.mark.parametrize("shape", [[7, 8, 1], [8, 65, 1], [8, 8, 5]])
def test_images_without_fixed_features_have_no_head_and_all_else(shape):
    content = shipped()
    content["profiles"]["digits"].update(shape=shape)
    content["profiles"]["digits"]["source"] = "npz"
    params = load(content)
    why = params.left_out("digits", "dpsgd_head")
    assert why.startswith("dpsgd_head is left out: it needs images of 8 to 64 pixels a side")
    assert not params.left_out("digits", "dpsgd")
    content["synthesis"]["generators"] = ["dp_head"]
    (sentence,) = mistakes(content)
    assert "a list without dp_head where images have not 8 to 64 pixels a side" in sentence


@pytest.mark.parametrize(
    "place",
    [
        ("profiles", "my_npz", "classifier"),
        ("profiles", "my_npz", "training", "dpsgd_head", "network"),
        ("profiles", "my_npz", "synthesis", "dp_head", "network"),
    ],
)
def test_a_network_that_is_an_encoder_needs_one(place):
    content = shipped()
    block = content
    for key in place[:-1]:
        block = block.setdefault(key, {})
    block[place[-1]] = "encoder"
    (line,) = mistakes(content)
    assert (
        "'encoder' parameter of profiles.my_npz must be a block with a network and a side" in line
    )
    content["profiles"]["my_npz"]["encoder"] = LITE
    load(content)


def test_an_encoder_takes_grey_and_colour_images_of_any_size():
    content = changed(("profiles", "my_npz", "encoder"), LITE)
    content["profiles"]["my_npz"]["classifier"] = "encoder"
    content["profiles"]["my_npz"]["shape"] = [224, 200, 3]
    load(content)
    content["profiles"]["my_npz"]["shape"] = [28, 28, 2]
    (line,) = mistakes(content)
    assert "must be null where images have not 1 or 3 channels. Got 'efficientnet_lite0'" in line


def test_an_encoder_whose_weights_no_package_has_names_their_file():
    content = changed(("profiles", "my_npz", "encoder"), {"network": "resnet18", "side": 96})
    (line,) = mistakes(content)
    assert "'weights' parameter of profiles.my_npz.encoder must be the path of a file" in line
    content["profiles"]["my_npz"]["encoder"]["weights"] = "weights/resnet18.pth"
    load(content)


@pytest.mark.parametrize("network", ["scatter", "encoder"])
def test_a_head_has_the_schedules_of_its_network_and_its_own_where_it_names_them(network):
    content = changed(("profiles", "my_npz", "encoder"), LITE)
    block = {"network": network}
    content["profiles"]["my_npz"] |= {
        "synthesis": {"dp_head": block},
        "training": {"dpsgd_head": block},
    }
    params = load(content)
    expected = params.heads[network].schedules
    assert params.generator("my_npz", "dp_head").schedules == expected
    assert params.training("my_npz", "dpsgd_head").schedules == expected
    block["schedules"] = [{"from_signal": 0, "steps": 3, "learning_rate": 1.0}]
    params = load(content)
    for settings in (
        params.generator("my_npz", "dp_head"),
        params.training("my_npz", "dpsgd_head"),
    ):
        assert [schedule.steps for schedule in settings.schedules] == [3]


def test_schedules_that_do_not_begin_at_nought_are_refused_where_they_stand():
    content = shipped()
    content["heads"]["encoder"]["schedules"][0]["from_signal"] = 1.0
    (line,) = mistakes(content)
    assert "'schedules' parameter of heads.encoder must be a list of at least one schedule" in line
