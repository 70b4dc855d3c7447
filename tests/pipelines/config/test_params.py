"""Every mistake in params.yaml is one sentence that names the parameter, the rule and what was found."""

import math
import os
import subprocess
import sys
import types
import typing

import pytest
from project import ROOT
from pydantic import BaseModel
from ruamel.yaml import YAML
from shipped import changed, load, mistakes, shipped

from pipelines import config
from pipelines.config.generators import GENERATORS
from pipelines.errors import UserError


def numbers(node, path=()):
    """Paths of all numeric leaves."""
    if isinstance(node, bool):
        return
    if isinstance(node, int | float):
        yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, child in children:
        yield from numbers(child, (*path, step))


NUMBERS = list(numbers(shipped()))


def numeric_fields(block: type[BaseModel]):
    """(block, field) of every numeric field of the schema, at any depth."""
    for name, field in block.model_fields.items():
        todo = [field.annotation]
        while todo:
            annotation = todo.pop()
            if annotation in (int, float):
                yield block.__name__, name
            elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
                yield from numeric_fields(annotation)
            elif typing.get_origin(annotation) in (list, dict, typing.Union, types.UnionType, typing.Annotated):
                todo.extend(typing.get_args(annotation))


def test_the_generated_bad_values_reach_every_numeric_field_of_the_schema():
    blocks = [config.Params, *GENERATORS.values()]
    fields = {name for block in blocks for _, name in numeric_fields(block)}
    assert len(fields) > 40
    reached = {step for path in NUMBERS for step in path if isinstance(step, str)}
    assert fields - {"lifetime_epsilon", "lifetime_delta"} <= reached  # the knobs that the shipped file leaves out


def test_the_shipped_parameters_are_valid():
    config.load(ROOT / "params.yaml")
    load(shipped())


def named(path: tuple) -> str:
    """How a sentence about the value at `path` begins."""
    if isinstance(path[-1], int):
        return f"Item {path[-1] + 1} of the list {'.'.join(map(str, path[:-1]))} "
    return f"The '{path[-1]}' parameter"


BAD = [-1, -0.5, math.nan, -math.inf, "3", "much", True, [1], {"a": 1}]


@pytest.mark.parametrize("path", NUMBERS, ids=lambda path: ".".join(map(str, path)))
def test_a_bad_number_is_one_sentence_that_names_it(path):
    for bad in BAD:
        lines = mistakes(changed(path, bad))
        assert len(lines) == 1
        assert lines[0].startswith(named(path))
        assert "must be a" in lines[0] or "must be one" in lines[0]
        assert lines[0].endswith(f"Got {bad!r} instead. (params.yaml)")


REQUIRED = [
    path
    for path in NUMBERS
    if isinstance(path[-1], str)
    and path[0] not in ("clients", "networks")
    and not set(path[2:-1]) & {*GENERATORS, "training"}
]


@pytest.mark.parametrize("path", REQUIRED, ids=lambda path: ".".join(map(str, path)))
def test_a_missing_number_is_one_sentence_that_names_it(path):
    content = shipped()
    owner = content
    for step in path[:-1]:
        owner = owner[step]
    del owner[path[-1]]
    (line,) = mistakes(content)
    assert line.startswith(f"The '{path[-1]}' parameter") and "is missing" in line


@pytest.mark.parametrize(
    "path, bad",
    [
        (("clients", "c0", "epsilon"), 0),
        (("clients", "c0", "epsilon"), 0.0),
        (("clients", "c0", "delta"), 0),
        (("clients", "c0", "delta"), 1),
        (("privacy", "delta"), 0.0),
        (("privacy", "delta"), 1.0),
        (("partition", "alpha"), 0),
        (("partition", "alpha"), math.inf),
        (("prepare", "test_fraction"), 1.0),
        (("seed",), 1.5),
        (("meta", "rounds"), 0),
        (("meta", "rounds"), 2.0),
        (("meta", "zeta"), 0.0),
        (("meta", "zeta"), 1.01),
        (("synthesis", "dp_moments", "centre"), 1.5),
        (("synthesis", "dp_moments", "first_share"), 1.0),
        (("synthesis", "datalens", "threshold"), 0.0),
        (("dp_baselines", "dpsgd", "sampling_rate"), 1.0),
        (("profiles", "digits", "classes"), 1),
    ],
)
def test_the_edges_of_each_interval(path, bad):
    (line,) = mistakes(changed(path, bad))
    assert line.startswith(f"The '{path[-1]}' parameter") and f"Got {bad!r} instead" in line


def test_the_sentence_reads_as_promised():
    (line,) = mistakes(changed(("clients", "c0", "epsilon"), -1))
    assert line == ("The 'epsilon' parameter of clients.c0 must be a float in (0, inf]. Got -1 instead. (params.yaml)")


@pytest.mark.parametrize(
    "path, near",
    [
        (("sed",), "seed"),
        (("clients", "c0", "epsilom"), "epsilon"),
        (("meta", "round"), "rounds"),
        (("synthesis", "datalens", "teacher"), "teachers"),
        (("synthesis", "dp_moments", "low_epsilon", "belov"), "below"),
        (("profiles", "digits", "datalens", "topk"), "top_k"),
    ],
)
def test_an_unknown_key_is_named_with_its_nearest_neighbour(path, near):
    (line,) = mistakes(changed(path, 1))
    assert f"The '{path[-1]}' parameter" in line and "is unknown" in line and repr(near) in line


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


@pytest.mark.parametrize("path", [("datasets",), ("partition", "clients")])
def test_names_in_lists_are_checked_too(path):
    assert "letters, digits and underscores" in mistakes(changed(path, ["a/b"]))[0]


@pytest.mark.parametrize(
    "path, bad, said",
    [
        (("datasets",), ["fashion"], "a block under 'profiles'"),
        (("clients",), {}, "at least one client"),
        (("clients",), {"c9": {"epsilon": 1.0}}, "'partition.clients'"),
        (("partition", "clients"), ["c0", "c1", "c1"], "none twice"),
        (("partition", "small"), {"client": "c9", "train_records": 4}, "'partition.clients'"),
        (("partition", "small"), {"client": "c1", "train_records": 3}, "[4, 1e9]"),
        (("partition", "test_fraction"), 0.95, "below 1 - validation_fraction"),
        (("partition", "scheme"), "random", "one of 'dirichlet', 'shards', 'quantity' or 'iid'"),
        (("privacy", "noise"), "none", "one of 'os_entropy' or 'seeded_for_tests'"),
        (("synthesis", "generators"), ["dp_marf"], "one of 'datalens'"),
        (("profiles", "digits", "shape"), [8, 8], "three"),
        (("profiles", "digits", "shape"), [8, 8, 1, 1], "three"),
        (
            ("profiles", "digits", "shape"),
            [8, 0, 1],
            "Item 2 of the list profiles.digits.shape must be an int in [1, 4096]. Got 0",
        ),
        (("profiles", "digits", "classifier"), "cnn", "'mlp' for images below 16x16"),
        (("meta", "ema"), "yes", "boolean"),
        (("meta",), None, "a mapping"),
        (("meta",), 3, "a mapping"),
        (("clients", "c0"), 3.0, "a mapping"),
        (("synthesis", "gan"), None, "a mapping"),
        (("profiles", "digits", "gan"), None, "a mapping"),
    ],
)
def test_blocks_that_disagree_are_one_sentence(path, bad, said):
    (line,) = mistakes(changed(path, bad))
    assert said in line and "Got" in line and line.endswith("(params.yaml)")


def test_a_number_as_a_key_is_one_readable_sentence():
    (line,) = mistakes(changed((5,), 1))
    assert "must be a name" in line


def test_each_mistake_has_its_own_line():
    content = changed(("seed",), "x")
    content["meta"]["rounds"] = 0
    content["meta"]["extra"] = 1
    assert len(mistakes(content)) == 3


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
    assert line.endswith(f"is unknown, did you mean {near!r}? (params.yaml)")


def test_nothing_is_suggested_where_nothing_is_near():
    (line,) = mistakes(changed(("clients", "c0", "steps"), 1))
    assert line == "The 'steps' parameter of clients.c0 is unknown. (params.yaml)"


def test_an_item_of_a_list_is_counted_from_one():
    (line,) = mistakes(changed(("synthesis", "generators"), ["dp_moments", "dp_marf"]))
    assert line.startswith("Item 2 of the list synthesis.generators must be one of 'datalens'")
    assert line.endswith("Got 'dp_marf' instead. (params.yaml)")


@pytest.mark.parametrize(
    "path, bad",
    [
        (("clients", "c0", "epsilon"), 10**400),
        (("clients", "c0", "epsilon"), 1e-300),
        (("clients", "c0", "epsilon"), 1e300),
        (("clients", "c0", "delta"), 1e-320),
        (("seed",), 10**400),
        (("privacy", "delta"), 1e-320),
        (("partition", "alpha"), 1e300),
        (("dp_baselines", "nbafl", "rounds"), 10**400),
        (("dp_baselines", "dpsgd", "noise_multiplier"), 1e200),
        (("dp_baselines", "dpsgd", "sampling_rate"), 0.9999999999999999),
        (("dp_baselines", "dpsgd", "clipping_norm"), 1e300),
        (("dp_baselines", "dpsgd", "clipping_noise"), 1e-200),
        (("dp_baselines", "nbafl", "clipping_norm"), 1e300),
        (("synthesis", "dp_moments", "first_share"), 1e-300),
        (("synthesis", "dp_moments", "count_weight"), 1e-300),
        (("synthesis", "dp_merf", "features"), 1),
        (("synthesis", "dp_teacher", "clipping_norm"), 1e300),
        (("meta", "rho"), 1e-320),
        (("profiles", "digits", "images"), 10**18),
    ],
)
def test_a_number_beyond_all_sense_is_refused_by_a_rule(path, bad):
    (line,) = mistakes(changed(path, bad))
    got = "an int of about 401 digits" if bad == 10**400 else repr(bad)
    assert line.startswith(f"The '{path[-1]}' parameter") and f"Got {got} instead" in line


def test_a_finite_epsilon_is_kept_from_what_floats_cannot_hold():
    (line,) = mistakes(changed(("clients", "c0", "epsilon"), 1e-300))
    assert "must be a float in [1e-6, 1e9], or .inf, which asks for no privacy" in line


def test_a_number_keeps_its_type():
    params = load(changed(("clients", "c0", "epsilon"), 3))
    assert type(params.clients["c0"].epsilon) is float and type(params.meta.rounds) is int


@pytest.mark.parametrize(
    "path", [("prepare", "root"), ("profiles", "digits", "licence"), ("quality", "inception_weights")]
)
@pytest.mark.parametrize("bad", ["a\0b", "a\nb", "\ud800", "x" * 201])
def test_a_text_that_no_file_can_hold_is_refused(path, bad):
    (line,) = mistakes(changed(path, bad))
    assert "a text of one line" in line


def test_a_long_name_is_no_name():
    content = shipped()
    content["clients"]["c" * 65] = {"epsilon": 1.0}
    (line,) = mistakes(content)
    assert "a name of at most 64 characters" in line


@pytest.mark.parametrize("text", ["", "[1, 2]", "seed: [1", "seed: 1\nseed: 2", "a: !!python/object:os.system b", "\0"])
def test_a_file_that_is_no_mapping_or_no_yaml_is_one_sentence(text, tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        config.load(path)
    assert len(str(error.value).splitlines()) == 1 and "params.yaml" in str(error.value)


def test_a_file_in_another_encoding_or_absent_is_one_sentence(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_bytes("seed: 1  # é".encode("latin-1"))
    with pytest.raises(UserError, match="not valid YAML"):
        config.load(path)
    with pytest.raises(UserError, match=r"Could not read .* Run from the project's root"):
        config.load(tmp_path / "absent.yaml")


def command(folder, content: dict) -> subprocess.CompletedProcess:
    """`python -m pipelines.config` where params.yaml holds `content`."""
    with (folder / "params.yaml").open("w") as file:
        YAML(typ="safe").dump(content, file)
    return subprocess.run(
        [sys.executable, "-m", "pipelines.config"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def test_the_command_says_in_one_line_that_all_is_well(tmp_path):
    run = command(tmp_path, shipped())
    assert (run.returncode, run.stderr) == (0, "")
    said = "params.yaml is valid: 1 data set, 2 clients, 2 generators, 14 baselines, 6 noisy baselines.\n"
    assert run.stdout == said


def test_the_command_checks_the_file_of_the_working_folder(tmp_path):
    run = command(tmp_path, changed(("seed",), -1))
    assert run.returncode == 1
    assert run.stderr.strip().splitlines() == [
        "Error: The 'seed' parameter must be an int in [0, 1e18]. Got -1 instead. (params.yaml)"
    ]


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
    rule = "a name for each of the 2 classes" if names == [] else "null or a list of texts, none twice"
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
    """Not that a network must be 'mlp' for images of three rows."""
    content = shipped()
    content["profiles"]["my_npz"]["shape"] = [3, 28, 28]
    (line,) = mistakes(content)
    assert "must be [height, width, channels]: this one has its channels first, write [28, 28, 3]." in line
    content["profiles"]["my_npz"]["shape"] = [28, 28, 3]
    assert load(content).profiles["my_npz"].shape == [28, 28, 3]


def test_bad_images_fail_where_nothing_else_is_said():
    content = shipped()
    del content["prepare"]["on_unreadable"]
    assert load(content).prepare.on_unreadable == "fail"
    content["prepare"]["on_unreadable"] = "ignore"
    assert mistakes(content)[0].startswith("The 'on_unreadable' parameter of prepare must be one of 'fail' or 'skip'.")
