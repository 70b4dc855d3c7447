"""Makes broken and absurd parameter files.

Each leaf of the shipped ones gets each odd value. Keys are removed, added and renamed, and some
texts are no YAML. Everything has one order, so a seed picks the same sample anywhere.
"""

import copy
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from project import ROOT
from shipped import shipped

NUMBERS = [
    math.nan,
    math.inf,
    -math.inf,
    -1,
    0,
    0.0,
    -0.0,
    1e-320,
    1e-300,
    1e-12,
    1e-9,
    1e-6,
    1e-3,
    0.5,
    0.999,
    1.0,
]
NUMBERS += [0.9999999999999999, 1, 2, 3, 7, 1000, 10**4, 10**6, 1e3, 1e6, 1e9, 1e17, 1e300]
NUMBERS += [10**18, 10**30, 10**400, -(10**400)]
TEXTS = [
    "",
    "x",
    "1.0",
    ".inf",
    "null",
    "é",
    "\ud800",
    "a\0b",
    "a\nb",
    "../x",
    "{}",
    "${seed}",
    "y" * 5000,
    "-",
    " ",
]
OTHERS = [
    True,
    False,
    None,
    [],
    [1],
    ["x"],
    [[]],
    [None],
    {},
    {"a": 1},
    {"": None},
    {1: 2},
    b"x",
    (1, 2),
    {"s"},
]
VALUES = [*NUMBERS, *TEXTS, *OTHERS]
FILES = (
    "params.yaml",
    "settings/generators.yaml",
    "settings/training.yaml",
    "settings/dp.yaml",
    "profiles/digits.yaml",
    "profiles/mnist.yaml",
)


class Mutation(NamedTuple):
    """Holds a changed copy of the shipped content. what: its description for a reader. make: builds
    it anew.
    """

    what: str
    make: Callable[[], dict]


def of_content() -> list[Mutation]:
    return [*_values(), *_keys()]


def leaves(node: object, path: tuple = ()) -> Iterator[tuple]:
    """Yields the paths of all values that hold no others, and of all lists and empty mappings."""
    if isinstance(node, dict) and node:
        for key, child in node.items():
            yield from leaves(child, (*path, key))
        return
    yield path
    for place, child in enumerate(node if isinstance(node, list) else ()):
        yield from leaves(child, (*path, place))


def _values() -> Iterator[Mutation]:
    for path in leaves(shipped()):
        for value in VALUES:
            yield Mutation(
                f"{_dotted(path)} = {_short(value)}",
                lambda path=path, value=value: _with(path, value),
            )


def _keys() -> Iterator[Mutation]:
    for path in _blocks(shipped()):
        owner = path[:-1]
        key = path[-1]
        yield Mutation(f"{_dotted(path)} removed", lambda path=path: _without(path))
        for name in (key[:-1], f"{key}s", key.upper(), 5, "", None):
            made = Mutation(
                f"{_dotted(path)} renamed {name!r}",
                lambda path=path, name=name: _renamed(path, name),
            )
            yield made
        yield Mutation(
            f"{_dotted(owner)} has an odd key", lambda owner=owner: _with((*owner, "odd"), 1)
        )


def _blocks(node: object, path: tuple = ()) -> Iterator[tuple]:
    """Yields the paths of all keys."""
    for key, child in node.items() if isinstance(node, dict) else ():
        yield (*path, key)
        yield from _blocks(child, (*path, key))


def _owner(content: dict, path: tuple):
    for step in path[:-1]:
        content = content[step]
    return content


def _with(path: tuple, value: object) -> dict:
    content = shipped()
    _owner(content, path)[path[-1]] = copy.deepcopy(value)
    return content


def _without(path: tuple) -> dict:
    content = shipped()
    del _owner(content, path)[path[-1]]
    return content


def _renamed(path: tuple, name: object) -> dict:
    content = shipped()
    owner = _owner(content, path)
    owner[name] = owner.pop(path[-1])
    return content


def _dotted(path: tuple) -> str:
    return ".".join(map(str, path)) or "the file"


def _short(value: object) -> str:
    if isinstance(value, int) and abs(value) > 1e30:
        return f"an int of {value.bit_length()} bits"
    return repr(value)[:40]


def texts() -> dict[str, tuple[str, bytes]]:
    """Returns (file, text) of files that are no plain YAML, or nearly none, by what is wrong."""
    found = {}
    for file in FILES:
        whole = (ROOT / file).read_bytes()
        odd = {**_garbled(whole), **_structures(whole), **_not_parameters(whole)}
        odd |= _odd_scalars(whole) if file == "params.yaml" else _odd_bases(whole)
        for kind, made in odd.items():
            for place, text in enumerate(made):
                found[f"{file} {kind} {place}"] = (file, text)
    return found


def _odd_bases(whole: bytes) -> dict[str, list[bytes]]:
    """Returns files whose blocks name no block, themselves or one another as their base."""
    bases = (b"meta", b"fedavg", b"dpsgd", b"dp_moments", b"cnn")
    odd = (b"nothing", b"[x]", b"null", b"", b"7", b"fedprox", b"agn", b"dp_teacher", b"abadi")
    return {
        "bases": [
            whole.replace(b"base: " + base, b"base: " + other) for base in bases for other in odd
        ]
    }


def _garbled(whole: bytes) -> dict[str, list[bytes]]:
    """Returns files whose bytes or lines are damaged."""
    lines = whole.splitlines(keepends=True)
    middle = len(whole) // 2
    return {
        "truncated": [whole[: len(whole) * part // 37] for part in range(37)],
        "a line twice": [
            b"".join([*lines[:at], lines[at], *lines[at:]]) for at in range(0, len(lines), 5)
        ],
        "a line gone": [
            b"".join([*lines[:at], *lines[at + 1 :]]) for at in range(0, len(lines), 7)
        ],
        "no UTF-8": [
            whole[:middle] + byte + whole[middle:] for byte in (b"\xff", b"\xc3(", b"\xed\xa0\x80")
        ],
        "another encoding": [
            whole.decode().encode(name) for name in ("utf-16", "utf-32", "utf-8-sig")
        ],
        "control characters": [
            whole[:middle] + byte + whole[middle:] for byte in (b"\0", b"\x07", b"\x1b", b"\x7f")
        ],
        "tabs": [whole.replace(b"  ", b"\t"), b"\t" + whole, whole.replace(b": ", b":\t", 9)],
        "line ends": [
            whole.replace(b"\n", b"\r\n"),
            whole.replace(b"\n", b"\r"),
            whole.replace(b"\n", b" "),
        ],
    }


def _structures(whole: bytes) -> dict[str, list[bytes]]:
    """Returns files with documents, aliases, merges or depths that no parameters need."""
    return {
        "deep": [
            b"[" * 3000 + b"]" * 3000,
            b"{a: " * 3000 + b"}" * 3000,
            b"- " * 3000,
            b"? " * 3000,
        ],
        "deep in place": [whole.replace(b"seed: 7", b"seed: " + b"[" * 3000 + b"]" * 3000)],
        "a bomb": [b"a0: &a0 [1, 1]\n" + b"".join(_doubling(at) for at in range(60)) + whole],
        "an alias of itself": [
            b"seed: &a [*a]\n",
            b"clients: &a {c0: *a}\n",
            b"&a {*a : 1}",
            b"&a {<<: *a}",
        ],
        "documents": [
            whole + b"\n---\n" + whole,
            b"---\n" + whole,
            whole + b"\n...\n",
            whole + b"\n... x",
            b"--- |\n x",
        ],
        "directives": [
            b"%YAML 1.1\n---\n" + whole,
            b"%YAML 9.9\n---\n" + whole,
            b"%TAG ! x\n---\n" + whole,
            b"%x",
        ],
        "merges": [b"<<: 3\n" + whole, b"<<: [1]\n" + whole],
    }


def _odd_scalars(whole: bytes) -> dict[str, list[bytes]]:
    """Returns files with tags and values that are not plain."""
    return {
        "tags": [
            whole.replace(b"seed: 7", b"seed: " + tag)
            for tag in (
                b"!x 7",
                b"!!python/object:os.system [x]",
                b"!!python/name:os.system",
                b"!!str 7",
                b"!!int x",
            )
        ],
        "dates and more": [
            whole.replace(b"seed: 7", b"seed: " + value)
            for value in (
                b"2024-01-01",
                b"2024-99-99",
                b"!!set {a}",
                b"!!omap [a: 1]",
                b"!!binary aGk=",
                b"1_0",
                b"0o17",
            )
        ],
        "numbers": [
            whole.replace(b"{epsilon: 10.0}", b"{epsilon: " + value + b"}", 1)
            for value in (
                b"1e400",
                b"1e-400",
                b"9" * 400,
                b"9" * 9000,
                b"0x" + b"f" * 9000,
                b"!!float 1",
                b"+.INF",
                b"-.inf",
            )
        ],
    }


def _not_parameters(whole: bytes) -> dict[str, list[bytes]]:
    """Returns files that hold nothing, or too much."""
    return {
        "nothing": [b"", b"\n", b"# no\n", b"null", b"{}", b"[]", b"7", b"x", b"''", b"*a", b"&a"],
        "large": [
            b"#" * 2_000_000,
            whole + b"#" * 900_000,
            b"a: " + b"x" * 999_000,
            b"x\n" * 400_000,
        ],
    }


def _doubling(at: int) -> bytes:
    return f"a{at + 1}: &a{at + 1} [*a{at}, *a{at}]\n".encode()
