"""Tests that a number which a knob may not hold gives one sentence.

It names the parameter, the rule and the value.
"""

import math
import types
import typing

import pytest
from pydantic import BaseModel
from shipped import changed, load, mistakes, shipped

from pipelines import config
from pipelines.config import values
from pipelines.config.generators import GENERATORS
from pipelines.config.places import belongs_in


def numbers(node, path=()):
    """Paths of all numeric leaves."""
    if isinstance(node, bool):
        return
    if isinstance(node, int | float):
        yield path
    children = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    for step, child in children:
        yield from numbers(child, (*path, step))


def of_one_profile_each(paths):
    """Returns the paths without those that another profile has, too: all have one schema."""
    first = {}
    for path in paths:
        place = path[2:] if path[0] == "profiles" else path
        first.setdefault((path[0], place), path)
    return list(first.values())


NUMBERS = of_one_profile_each(numbers(shipped()))


def numeric_fields(block: type[BaseModel]):
    """Returns (block, field) of every numeric field of the schema, at any depth."""
    for name, field in block.model_fields.items():
        todo = [field.annotation]
        while todo:
            annotation = todo.pop()
            if annotation in (int, float):
                yield block.__name__, name
            elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
                yield from numeric_fields(annotation)
            elif typing.get_origin(annotation) in (
                list,
                dict,
                typing.Union,
                types.UnionType,
                typing.Annotated,
            ):
                todo.extend(typing.get_args(annotation))


def test_the_generated_bad_values_reach_every_numeric_field_of_the_schema():
    blocks = [config.Params, *GENERATORS.values()]
    fields = {name for block in blocks for _, name in numeric_fields(block)}
    assert len(fields) > 40
    reached = {step for path in NUMBERS for step in path if isinstance(step, str)}
    # the knobs that the shipped file leaves out, or has as null
    absent = {"lifetime_epsilon", "lifetime_delta", "pool_per_class", "every", "records_per_client"}
    # a word there
    words = {"colluding"}
    assert fields - absent - words <= reached


def named(path: tuple) -> str:
    """Returns how a sentence about the value at `path` begins."""
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
        assert lines[0].endswith(f"Got {bad!r} instead. ({belongs_in(path)})")


def field_of(path: tuple):
    """The schema's field of a value, or None: of an item of a list, and of an override."""
    block = config.Params
    for step in path[:-1]:
        held = block.model_fields.get(step)
        block = values._inner(held.annotation if held else block)
    return block.model_fields.get(path[-1])


REQUIRED = []
OPTIONAL = []
for place in NUMBERS:
    if place[0] not in ("clients", "networks") and (field := field_of(place)):
        (REQUIRED if field.is_required() else OPTIONAL).append(place)


def without(path: tuple) -> dict:
    """Returns the shipped parameters without one of their numbers."""
    content = shipped()
    owner = content
    for step in path[:-1]:
        owner = owner[step]
    del owner[path[-1]]
    return content


@pytest.mark.parametrize("path", REQUIRED, ids=lambda path: ".".join(map(str, path)))
def test_a_missing_number_is_one_sentence_that_names_it(path):
    (line,) = mistakes(without(path))
    assert line.startswith(f"The '{path[-1]}' parameter") and "is missing" in line


@pytest.mark.parametrize("path", OPTIONAL, ids=lambda path: ".".join(map(str, path)))
def test_an_optional_number_that_is_left_out_has_its_neutral_value(path):
    content = without(path)
    content["dp_baselines"]["algorithms"] = ["dpsgd"]  # others need a public_fraction
    found = load(content)
    for step in path:
        found = found[step] if isinstance(found, dict | list) else getattr(found, step)
    assert found == field_of(path).default


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
    assert line == (
        "The 'epsilon' parameter of clients.c0 must be a float in (0, inf]. Got -1 instead. (params.yaml)"
    )


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
