"""Tests which settings a network brings, and which images, settings and files it needs."""

from typing import get_args

import pytest
from shipped import changed, load, mistakes, shipped

from pipelines.config.data import Network

# a frozen network, as a profile names it
LITE = {"network": "efficientnet_lite0", "side": 96}


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
            "The 'cnn' parameter of networks must be one of meta, fine_tune",
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
    expected = getattr(params.heads, network).schedules
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
