"""The kinds of values that params.yaml may hold, and what is said of one that it may not: name, owner, rule, what was
found, in one sentence."""

import difflib
import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from pipelines.errors import UserError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")  # a name becomes a folder and a part of a stage's name, joined by '-'
DVCS = ("nfiles", "size")  # keys that DVC leaves out where it compares: it would serve a stale run


def number(kind: type, interval: str):
    """An int or a float inside an interval written as mathematicians do, such as `(0, 1]`."""
    low, high = (float(edge) for edge in interval[1:-1].split(","))
    rule = f"{'an int' if kind is int else 'a float'} in {interval}"

    def check(value):
        is_number = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
        above = is_number and (value > low if interval[0] == "(" else value >= low)
        below = is_number and (value < high if interval[-1] == ")" else value <= high)
        if not (above and below):
            raise PydanticCustomError("rule", "must be {rule}", {"rule": rule})
        return kind(value)

    return Annotated[kind, BeforeValidator(check)]


def _name(value):
    if not isinstance(value, str) or not NAME.fullmatch(value) or value in DVCS:
        rule = f"a name of letters, digits and underscores, and none of DVC's own, {' and '.join(DVCS)}"
        raise PydanticCustomError("rule", "must be {rule}", {"rule": rule})
    return value


Name = Annotated[str, BeforeValidator(_name)]
Count = number(int, "[1, inf)")
Natural = number(int, "[0, inf)")
Positive = number(float, "(0, inf)")
NonNegative = number(float, "[0, inf)")
OpenFraction = number(float, "(0, 1)")
Fraction = number(float, "[0, 1)")
Share = number(float, "(0, 1]")
Epsilon = number(float, "(0, inf]")


class Block(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def mistake(where: str, got: object, rule: str) -> UserError:
    """The error to raise for the value at `where` (a dotted path), which must be `rule`."""
    owner, _, name = where.rpartition(".")
    return UserError(_sentence(name, owner, rule, got))


def _sentence(name: str, owner: str, rule: str, got: object) -> str:
    return f"The '{name}' parameter{f' of {owner}' if owner else ''} must be {rule}. Got {got!r} instead. (params.yaml)"


def sentences(error: ValidationError, owner: str = "") -> str:
    """One line per mistake that pydantic found; `owner` goes before its own path.

    The same value under the same name is told once: a block that begins with `<<:` repeats the mistakes of another.
    """
    told = {}
    for item in error.errors():
        told.setdefault((item["loc"][-1:], item["type"], repr(item["input"])), _explain(item, owner))
    return "\n".join(told.values())


def _explain(item: dict, prefix: str) -> str:
    """One pydantic error as a sentence: name, owner, rule, what was found."""
    location = [str(part) for part in item["loc"] if part != "[key]"]
    name = location[-1] if location else "params.yaml"
    owner = ".".join(filter(None, [prefix, *location[:-1]]))
    of = f" of {owner}" if owner else ""
    if item["type"] == "missing":
        return f"The '{name}' parameter{of} is missing. (params.yaml)"
    if item["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, _known_names(), n=1)
        return f"The '{name}' parameter{of} is unknown{f', did you mean {near[0]!r}?' if near else '.'} (params.yaml)"
    rule = {
        "literal_error": f"one of {item.get('ctx', {}).get('expected')}",
        "model_type": "a mapping",
        "invalid_key": "a name, not a number",
        "too_short": "a list of three",  # the one list with a length is a profile's shape
        "too_long": "a list of three",
    }
    plain = item["msg"].removeprefix("must be ").removeprefix("Input should be ")
    return _sentence(name, owner, rule.get(item["type"], plain), item["input"])


def _known_names() -> list[str]:
    return sorted({name for block in _subclasses(Block) for name in block.model_fields})


def _subclasses(block: type) -> list[type]:
    return [block, *(deeper for child in block.__subclasses__() for deeper in _subclasses(child))]
