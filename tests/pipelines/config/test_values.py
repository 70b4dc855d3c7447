"""Tests names, texts and keys that params.yaml may not hold.

Each gives a sentence with what may have been meant.
"""

import pytest
from shipped import changed, mistakes, shipped

from pipelines.config.places import belongs_in


@pytest.mark.parametrize(
    "path, near",
    [
        (("sed",), "seed"),
        (("clients", "c0", "epsilom"), "epsilon"),
        (("meta", "round"), "rounds"),
        (("synthesis", "datalens", "teacher"), "teachers"),
        (("synthesis", "dp_moments", "low_epsilon", "belov"), "below"),
        (("profiles", "digits", "synthesis", "datalens", "topk"), "top_k"),
    ],
)
def test_an_unknown_key_is_named_with_its_nearest_neighbour(path, near):
    (line,) = mistakes(changed(path, 1))
    assert f"The '{path[-1]}' parameter" in line and "is unknown" in line and repr(near) in line


@pytest.mark.parametrize(
    "path, near",
    [
        (("clients", "c0", "eps"), "epsilon"),
        (("clients", "c0", "lifetime_eps"), "lifetime_epsilon"),
        (("partition", "small", "train"), "train_records"),
        (("dp_baselines", "dpsgd_warm", "warm_start", "img"), "images"),
        (("profiles", "digits", "training", "fedprox"), "mu"),
    ],
)
def test_what_may_have_been_meant_is_a_name_that_the_block_may_hold(path, near):
    wrong = {"mu2": 1.0} if path[-1] == "fedprox" else 1.0
    (line,) = mistakes(changed(path, wrong))
    place = belongs_in(path)
    assert line.endswith(f"is unknown, did you mean {near!r}? ({place})")


def test_nothing_is_suggested_where_nothing_is_near():
    (line,) = mistakes(changed(("clients", "c0", "steps"), 1))
    assert line == "The 'steps' parameter of clients.c0 is unknown. (params.yaml)"


@pytest.mark.parametrize(
    "path, wrong, near",
    [
        (("baselines", "algorithms"), ["fedavgg"], "fedavg"),
        (("dp_baselines", "algorithms"), ["dpsgdhead"], "dpsgd_head"),
        (("synthesis", "generators"), ["dp_moment"], "dp_moments"),
        (("datasets",), ["digit"], "digits"),
        (("partition", "scheme"), "dirichlett", "dirichlet"),
    ],
)
def test_a_misspelt_choice_is_named_with_its_nearest_neighbour(path, wrong, near):
    line = mistakes(changed(path, wrong))[0]
    got = wrong[0] if isinstance(wrong, list) else wrong
    assert f"Got {got!r} instead: did you mean {near!r}?" in line


def test_nothing_is_suggested_for_a_choice_that_is_near_to_none():
    line = mistakes(changed(("partition", "scheme"), "xyz"))[0]
    assert "Got 'xyz' instead. (" in line


def test_a_client_without_a_shard_is_told_with_those_that_have_one():
    content = shipped()
    content["partition"]["clients"] = ["c0", "c9"]
    (line,) = mistakes(content)
    assert "must be among 'partition.clients' (c0, c9)" in line
    assert "Got 'c1' instead" in line


def test_a_client_that_stands_twice_is_told_first():
    content = shipped()
    content["partition"]["clients"][-1] = "c0"
    (line,) = mistakes(content)
    assert "'clients' parameter of partition must be" in line and "none twice" in line


@pytest.mark.parametrize("name", ["c/0", "../c0", "c 0", "", "-c", "c-0", ".c", "c0\n", 7, "ü"])
def test_a_client_s_name_must_be_fit_for_a_folder_and_a_stage(name):
    content = shipped()
    content["clients"][name] = {"epsilon": 1.0}
    assert "a name of letters, digits and underscores" in " ".join(mistakes(content))


@pytest.mark.parametrize("name", ["size", "nfiles"])
def test_a_client_is_not_called_what_dvc_leaves_out_where_it_compares(name):
    content = shipped()
    content["clients"][name] = {"epsilon": 1.0}
    assert "none of DVC's own, nfiles and size" in " ".join(mistakes(content))


def test_a_long_name_is_no_name():
    content = shipped()
    content["clients"]["c" * 65] = {"epsilon": 1.0}
    (line,) = mistakes(content)
    assert "a name of at most 64 characters" in line


@pytest.mark.parametrize("path", [("datasets",), ("partition", "clients")])
def test_names_in_lists_are_checked_too(path):
    assert "letters, digits and underscores" in mistakes(changed(path, ["a/b"]))[0]


def test_a_number_as_a_key_is_one_readable_sentence():
    (line,) = mistakes(changed((5,), 1))
    assert "must be a name" in line


def test_each_mistake_has_its_own_line():
    content = changed(("seed",), "x")
    content["meta"]["rounds"] = 0
    content["meta"]["extra"] = 1
    assert len(mistakes(content)) == 3


def test_an_item_of_a_list_is_counted_from_one():
    (line,) = mistakes(changed(("synthesis", "generators"), ["dp_moments", "dp_marf"]))
    assert line.startswith("Item 2 of the list synthesis.generators must be one of 'datalens'")
    assert line.endswith("Got 'dp_marf' instead: did you mean 'dp_merf'? (params.yaml)")


@pytest.mark.parametrize(
    "path",
    [("prepare", "root"), ("profiles", "digits", "licence"), ("quality", "inception_weights")],
)
@pytest.mark.parametrize("bad", ["a\0b", "a\nb", "\ud800", "x" * 201])
def test_a_text_that_no_file_can_hold_is_refused(path, bad):
    (line,) = mistakes(changed(path, bad))
    assert "a text of one line" in line
