"""Prints the settings that a method has for a data set, and where each value comes from."""

from collections.abc import Iterator

from pipelines import methods
from pipelines.config.checks import METHODS
from pipelines.config.files import Assembled
from pipelines.config.generators import GENERATORS
from pipelines.config.params import Params
from pipelines.config.places import PROFILES
from pipelines.errors import UserError

DEFAULT = "default in the code"


def lines(files: Assembled, params: Params, dataset: str, method: str) -> list[str]:
    """Returns `name: value`, and the value's origin, for each setting of a method.

    Args:
        files: The contents of the parameter files.
        params: What they come to.
        dataset: A data set's name.
        method: A generator, `pppfl` or its block `meta`, `fine_tune`, `new_clients`, or a baseline.

    Raises:
        UserError: There is no such data set or method.
    """
    name = methods.block(method)
    names = (*METHODS, *GENERATORS)
    if dataset not in params.profiles:
        known = ", ".join(params.profiles)
        raise UserError(f"The data set must be one of {known}. Got {dataset!r} instead.")
    if name not in names:
        raise UserError(f"The method must be one of {', '.join(names)}. Got {method!r} instead.")
    find = params.generator if name in GENERATORS else params.training
    rows = []
    for key, value in find(dataset, name):
        path = params.written(dataset, name, key)
        origin = _origin(files, path) if _stands(files.content, path) else DEFAULT
        rows.extend(_rows(key, _plain(value), origin))
    width = max((len(text) for text, _ in rows), default=0)
    return [f"{text:{width}}  # {origin}" for text, origin in rows] or ["no settings of its own"]


def _origin(files: Assembled, path: tuple[str, ...]) -> str:
    """Returns the file and the block in which the value at `path` is written."""
    written = files.source(path)
    block = written[2:-1] if written[0] == PROFILES else written[:-1]
    origin = f"{files.file(path)} {'.'.join(block)}"
    return origin if written == path else f"{origin}, the base of {_heir(path, written)}"


def _heir(path: tuple[str, ...], written: tuple[str, ...]) -> str:
    """Returns the block that has a base: where the two paths differ, seen from their ends."""
    at = 1
    while path[-at] == written[-at]:
        at += 1
    return path[-at]


def _stands(content: dict, path: tuple[str, ...]) -> bool:
    """Returns whether a file has a value at `path`, so that it is no default."""
    for key in path:
        if not isinstance(content, dict) or key not in content:
            return False
        content = content[key]
    return True


def _plain(value: object) -> object:
    return value.model_dump() if hasattr(value, "model_dump") else value


def _rows(key: str, value: object, origin: str) -> Iterator[tuple[str, str]]:
    """Yields a line per value; blocks within the settings have one for each of their own."""
    inner = {}
    if isinstance(value, dict):
        inner = value
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        inner = dict(enumerate(value))
    for name, content in inner.items():
        yield from _rows(f"{key}.{name}", content, origin)
    if not inner:
        yield f"{key}: {_written(value)}", origin


def _written(value: object) -> str:
    """Returns a value as the parameter files write it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
