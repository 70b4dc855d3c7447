"""Defines the kinds of values that the parameter files may hold.

It also words the sentence about a value that they may not hold: its name, owner and rule, what was
found, and the file.
"""

import difflib
import math
import re
from collections.abc import Callable, Collection
from typing import Annotated, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from pipelines.config.places import PARAMS, file_of
from pipelines.errors import UserError

Names = Collection[str]
# A name becomes a folder and a part of a stage's name, joined by '-'.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
# The most characters of a name. A file system takes 255 for all parts together.
LONGEST = 64
# The keys that DVC leaves out when it compares: it would serve a stale run.
DVCS = ("nfiles", "size")
# The most characters of a value in a sentence.
SHOWN = 200


def number(kind: type, interval: str):
    """Returns the kind of an int or a float inside an interval.

    Args:
        kind: int or float.
        interval: As mathematicians write it, such as `(0, 1]`.
    """
    low, high = (float(edge) for edge in interval[1:-1].split(","))
    rule = f"{'an int' if kind is int else 'a float'} in {interval}"

    def check(value):
        is_number = isinstance(value, int if kind is int else (int, float)) and not isinstance(
            value, bool
        )
        above = is_number and (value > low if interval[0] == "(" else value >= low)
        below = is_number and (value < high if interval[-1] == ")" else value <= high)
        if not (above and below):
            raise _broken(rule)
        return kind(value)

    return Annotated[kind, BeforeValidator(check)]


def _broken(rule: str) -> PydanticCustomError:
    return PydanticCustomError("rule", "must be {rule}", {"rule": rule})


def _name(value):
    if not isinstance(value, str) or not NAME.fullmatch(value) or value in DVCS:
        raise _broken(
            "a name of letters, digits and underscores, and none of DVC's own, "
            f"{' and '.join(DVCS)}"
        )
    if len(value) > LONGEST:
        raise _broken(f"a name of at most {LONGEST} characters")
    return value


def _text(value):
    if not isinstance(value, str) or not value.isprintable() or len(value) > SHOWN:
        raise _broken(
            f"a text of one line, without control characters and at most {SHOWN} characters long"
        )
    return value


def _epsilon(value):
    """Checks a budget. One beyond the edges is never meant, and a float cannot hold its noise."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not value > 0:
        raise _broken("a float in (0, inf]")
    if not (1e-6 <= value <= 1e9 or value == math.inf):
        raise _broken("a float in [1e-6, 1e9], or .inf, which asks for no privacy")
    return float(value)


# The edges are those of sense. Inside them no rate or sum overflows, whatever else is set, and a
# plan refuses what its lattice has no room for.
Name = Annotated[str, BeforeValidator(_name)]
Text = Annotated[str, BeforeValidator(_text)]
Seed = number(int, "[0, 1e18]")
# A number of rounds, steps, epochs, teachers, or images of a batch.
Count = number(int, "[1, 1e6]")
Natural = number(int, "[0, 1e6]")
Records = number(int, "[1, 1e9]")
# The height, width or number of channels of an image.
Side = number(int, "[1, 4096]")
# The width of a layer.
Width = number(int, "[1, 1e4]")
Fraction = number(float, "[0, 0.999999]")
OpenFraction = number(float, "[1e-6, 0.999999]")
Share = number(float, "[1e-6, 1]")
# A part of a budget. The rest buys something, too.
Part = number(float, "[1e-3, 0.999]")
Epsilon = Annotated[float, BeforeValidator(_epsilon)]
Delta = number(float, "[1e-15, 0.5]")
# The range of clipping norms in settings, and of those that a server may send.
CLIPPING_NORMS = (1e-9, 1e9)
# An L2 norm: the bound on what one record adds.
Norm = number(float, "[{:g}, {:g}]".format(*CLIPPING_NORMS))
# The standard deviation of noise over the sensitivity.
Multiplier = number(float, "[1e-9, 1e6]")
# A factor around 1 on noise, on a weight or on a width.
Factor = number(float, "[1e-3, 1e3]")
# A learning rate.
Rate = number(float, "[1e-12, 1e3]")
Positive = number(float, "[1e-6, 1e9]")
NonNegative = number(float, "[0, 1e6]")
Seconds = number(float, "[1e-3, 1e7]")


class Block(BaseModel):
    """Holds a block of settings: frozen, of exactly these names and types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def mistake(
    where: str, got: object, rule: str, file: str | None = None, known: Names = ()
) -> UserError:
    """Returns the error to raise for a value that must be something else.

    Args:
        where: The dotted path of the value.
        got: The value.
        rule: What it must be.
        file: The file in which the value stands; None if its path says so.
        known: The names that the value may have, of which the nearest is named.
    """
    owner, _, name = where.rpartition(".")
    said = _must(rule, got, known)
    return UserError(f"{_parameter(name, owner)} {said} ({file or file_of(where)})")


def _parameter(name: object, owner: str) -> str:
    return f"The '{name}' parameter{f' of {owner}' if owner else ''}"


def _must(rule: str, got: object, known: Names = ()) -> str:
    near = nearest(got, known) if isinstance(got, str) else None
    hint = f": did you mean {near!r}?" if near else "."
    return f"must be {rule}. Got {shown(got)} instead{hint}"


def shown(value: object) -> str:
    """Returns `repr`, cut if it is long.

    An int of more digits than anyone reads is shown by their number.
    """
    if isinstance(value, int) and abs(value) >= 10**30:
        digits = int(math.log10(2) * value.bit_length()) + 1
        return f"an int of about {digits} digits"
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}.."


def sentences(
    error: ValidationError, owner: str = "", file: Callable[[tuple], str] | None = None
) -> str:
    """Returns one line per mistake that pydantic found.

    The same value under the same name has one line, because a block with a `base` repeats the
    mistakes of another.

    Args:
        error: What pydantic found.
        owner: Goes before pydantic's own path.
        file: Returns the file of the value at pydantic's own path; None if the dotted path
            says so.
    """
    block = next((block for block in _subclasses(Block) if block.__name__ == error.title), Block)
    lines = {}
    for item in error.errors():
        key = (item["loc"][-1:], item["type"], shown(item["input"]))
        lines.setdefault(key, _explain(item, owner, block, file))
    return "\n".join(lines.values())


RULES = {
    "model_type": "a mapping",
    "dict_type": "a mapping",
    "list_type": "a list",
    "invalid_key": "a name, not a number",
    # the one list with a length is a profile's shape
    "too_short": "a list of three",
    "too_long": "a list of three",
}


def _explain(item: dict, prefix: str, block: type, file: Callable[[tuple], str] | None) -> str:
    """Returns one pydantic error as a sentence: name, owner, rule, what was found, the file.

    Args:
        item: The error.
        prefix: Goes before its location.
        block: The class in which its location begins.
        file: As of `sentences`.
    """
    steps = [part for part in item["loc"] if part != "[key]"]
    location = [
        part if str(part).isprintable() and len(str(part)) < SHOWN else shown(part)
        for part in steps
    ]
    name = location[-1] if location else PARAMS
    path = list(filter(None, [prefix, *map(str, location[:-1])]))
    owner = ".".join(path)
    place = file(tuple(location)) if file else file_of(".".join([*path, str(name)]))
    if item["type"] == "missing":
        return f"{_parameter(name, owner)} is missing. ({place})"
    if item["type"] == "extra_forbidden":
        near = nearest(name, _fields(block, steps[:-1]))
        hint = f", did you mean {near!r}?" if near else "."
        return f"{_parameter(name, owner)} is unknown{hint} ({place})"
    plain = item["msg"].removeprefix("must be ").removeprefix("Input should be ")
    rule = RULES.get(item["type"], plain)
    if item["type"] == "literal_error":
        rule = f"one of {item['ctx']['expected']}"
    known = re.findall("'([^']*)'", rule) if rule.startswith("one of") else []
    said = _must(rule, item["input"], known)
    if isinstance(name, int):
        return f"Item {name + 1} of the list {owner} {said} ({place})"
    return f"{_parameter(name, owner)} {said} ({place})"


def nearest(name: str, known: Collection[str]) -> str | None:
    """Returns what may have been meant: a name of nearly the same letters or the same beginning."""
    near = difflib.get_close_matches(name, known, n=1)
    begun = [
        other for other in known if name and (other.startswith(name) or name.startswith(other))
    ]
    return next(iter([*near, *begun]), None)


def _fields(block: type, location: list) -> list[str]:
    """Returns the names that the block at `location` may hold."""
    for step in location:
        field = block.model_fields.get(step) if issubclass(block, Block) else None
        block = _inner(field.annotation if field else block)
    return sorted(block.model_fields)


def _inner(annotation) -> type:
    """Returns the block that an annotation is about, such as `dict[Name, Client]`."""
    if isinstance(annotation, type) and issubclass(annotation, Block):
        return annotation
    return next((block for block in map(_inner, get_args(annotation)) if block is not Block), Block)


def _subclasses(block: type) -> list[type]:
    return [block, *(deeper for child in block.__subclasses__() for deeper in _subclasses(child))]
