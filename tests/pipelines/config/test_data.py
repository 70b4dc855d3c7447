"""Tests how a profile describes its images: class names, shape, and what happens to bad files."""

import pytest
from shipped import load, mistakes, shipped

BAD_NAMES = [
    "benign",
    [0, 1],
    ["a", "a"],
    ["a", ""],
    ["a", " "],
    ["a", "x" * 61],
    ["a", "\x1b[31m"],
    ["a", "b\n"],
    ["a", None],
    [],
    {"a": 0},
]


@pytest.mark.parametrize("names", BAD_NAMES)
def test_class_names_are_a_list_of_texts_that_a_card_can_print(names):
    content = shipped()
    content["profiles"]["my_folder"] |= {"classes": 2, "class_names": names}
    (line,) = mistakes(content)
    rule = (
        "a name for each of the 2 classes" if names == [] else "null or a list of texts, none twice"
    )
    assert line.startswith(f"The 'class_names' parameter of profiles.my_folder must be {rule}")
    assert line.isprintable() and f"Got {names!r} instead" in line


def test_class_names_are_as_many_as_the_classes_and_may_be_left_out():
    content = shipped()
    content["profiles"]["my_folder"] |= {"classes": 3, "class_names": ["a", "ä b"]}
    (line,) = mistakes(content)
    assert "must be a name for each of the 3 classes. Got ['a', 'ä b'] instead." in line
    content["profiles"]["my_folder"]["class_names"] = ["a", "ä b", "7"]
    assert load(content).profiles["my_folder"].class_names == ["a", "ä b", "7"]
    del content["profiles"]["my_folder"]["class_names"]
    assert load(content).profiles["my_folder"].class_names is None


def test_a_shape_with_its_channels_first_is_told_as_such():
    """The sentence does not say that a network must be 'mlp' for images of three rows."""
    content = shipped()
    content["profiles"]["my_npz"]["shape"] = [3, 28, 28]
    (line,) = mistakes(content)
    assert (
        "must be [height, width, channels]: this one has its channels first, write [28, 28, 3]."
        in line
    )
    content["profiles"]["my_npz"]["shape"] = [28, 28, 3]
    assert load(content).profiles["my_npz"].shape == [28, 28, 3]


def test_bad_images_fail_where_nothing_else_is_said():
    content = shipped()
    del content["prepare"]["on_unreadable"]
    assert load(content).prepare.on_unreadable == "fail"
    content["prepare"]["on_unreadable"] = "ignore"
    assert mistakes(content)[0].startswith(
        "The 'on_unreadable' parameter of prepare must be one of 'fail' or 'skip'."
    )


def natural(**changes) -> dict:
    content = shipped()
    content["partition"] |= {"scheme": "natural", "small": None, **changes}
    return content


def test_sites_are_texts_and_a_whole_number_is_one():
    content = natural(sites={"c0": ["Clinic North, Ward 3", 7], "c1": ["x"]})
    assert load(content).partition.sites == {"c0": ["Clinic North, Ward 3", "7"], "c1": ["x"]}
    assert load(natural()).partition.sites is None


def test_a_partition_without_sites_is_stored_as_before_there_were_any():
    """Kept runs of experiments are found by a digest of this block."""
    assert "sites" not in load(natural()).partition.model_dump()
    chosen = {"c0": ["x"], "c1": ["y"]}
    assert load(natural(sites=chosen)).partition.model_dump()["sites"] == chosen


SITES = {
    "a client without a list": ({"c0": ["x"]}, "sites", "a mapping of each of 'partition.clients'"),
    "another client": (
        {"c0": ["x"], "c1": ["y"], "c9": ["z"]},
        "sites",
        "a mapping of each of 'partition.clients'",
    ),
    "no site": ({"c0": ["x"], "c1": []}, "c1", "a list of at least one site"),
    "a site of two clients": ({"c0": ["x"], "c1": ["x"]}, "c1", "a list of at least one site"),
    "a site twice": ({"c0": ["x", "x"], "c1": ["y"]}, "c0", "a list of at least one site"),
}


@pytest.mark.parametrize("case", SITES)
def test_each_site_has_one_client_and_each_client_a_site(case):
    sites, name, rule = SITES[case]
    (line,) = mistakes(natural(sites=sites))
    assert line.startswith(f"The '{name}' parameter of partition") and f"must be {rule}" in line
    assert line.endswith("instead. (params.yaml)")
    # another scheme has no use for them
    content = natural(sites=sites, scheme="iid")
    assert load(content).partition.scheme == "iid"


@pytest.mark.parametrize("site", [None, 1.5, True, "", " ", "a\n", ["x"]])
def test_a_site_is_a_name(site):
    (line,) = mistakes(natural(sites={"c0": [site], "c1": ["y"]}))
    assert "must be the name of a site. Got" in line and line.isprintable()


def test_a_small_client_is_refused_where_each_record_stays_with_its_owner():
    (line,) = mistakes(natural(small={"client": "c1", "train_records": 40}))
    assert line.startswith(
        "The 'small' parameter of partition must be null with scheme 'natural', which takes no record"
    )
    assert line.endswith("instead. (params.yaml)")


def test_a_client_s_public_number_of_records_is_an_equal_share_of_the_declared_ones():
    content = shipped()
    content["partition"] |= {"small": None, "validation_fraction": 0.1, "test_fraction": 0.15}
    params = load(content)
    assert params.public_records("mnist", "c0") == params.public_records("mnist", "c1") == 22_500
    content["partition"]["records_per_client"] = 1000
    assert load(content).public_records("mnist", "c0") == 750
    content["clients"]["c0"]["records"] = 5000
    params = load(content)
    assert [params.public_records("mnist", name) for name in ("c0", "c1")] == [5000, 750]


def test_the_small_client_s_public_number_of_records_is_what_it_keeps():
    assert load(shipped()).public_records("mnist", "c1") == 40


def test_nobody_s_number_of_records_is_public_unless_somebody_declares_it():
    content = shipped()
    content["partition"]["small"] = None
    assert load(content).public_records("my_npz", "c0") is None
    content["clients"]["c0"]["records"] = 300
    assert load(content).public_records("my_npz", "c0") == 300


@pytest.mark.parametrize("bad", [0, -1, 2.5, "many", None, True, [1]])
def test_teachers_are_auto_or_a_number(bad):
    content = shipped()
    content["synthesis"]["datalens"]["teachers"] = bad
    line = mistakes(content)[0]
    assert line.startswith(
        "The 'teachers' parameter of synthesis.datalens must be an int in [1, 1e6], or 'auto'."
    )


def test_auto_needs_a_rule_whose_bounds_agree():
    content = shipped()
    content["synthesis"]["datalens"]["teachers_rule"] |= {"least_records": 9, "most_records": 8}
    assert "'least_records' is at most its 'most_records'" in mistakes(content)[0]
    content["synthesis"]["datalens"]["teachers_rule"] = None
    assert "'teachers_rule'" in mistakes(content)[0]


def test_a_client_that_declares_no_records_is_stored_as_before_one_could():
    """Kept runs of experiments are found by a digest of this block."""
    content = shipped()
    assert "records" not in load(content).clients["c0"].model_dump()
    content["clients"]["c0"]["records"] = 300
    assert load(content).clients["c0"].model_dump()["records"] == 300
