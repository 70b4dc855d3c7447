"""Reads plain data from a YAML file that a user wrote, or says in a sentence why it is none.

The text is measured event by event, and no value is built before its end. So a file whose blocks
lie thousands deep, or whose aliases stand for millions of values, is refused at once.
"""

import copy
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML, events
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.parser import Parser

from pipelines.errors import UserError

# The most bytes of a file.
LARGEST = 1_000_000
# The most blocks within one another, and the most values. An alias counts as what it stands for.
DEEPEST = 20
MOST = 50_000
# The most digits of an int.
DIGITS = 1_000


class Constructor(SafeConstructor):
    """Builds values as ruamel.yaml does.

    A number that Python cannot hold is a mistake with a line.
    """

    def construct_yaml_int(self, node: ScalarNode) -> int:
        """Builds an int."""
        if len(node.value) > DIGITS:
            raise ConstructorError(
                None, None, f"found an int of more than {DIGITS} digits", node.start_mark
            )
        return _constructed(super().construct_yaml_int, node)

    def construct_yaml_float(self, node: ScalarNode) -> float:
        """Builds a float."""
        value = _constructed(super().construct_yaml_float, node)
        if math.isinf(value) and "inf" not in node.value.lower():
            problem = "found a float beyond 1.8e308, which would be read as infinity"
            raise ConstructorError(None, None, problem, node.start_mark)
        return value


for kind in ("int", "float"):
    Constructor.add_constructor(
        f"tag:yaml.org,2002:{kind}", getattr(Constructor, f"construct_yaml_{kind}")
    )


def read(path: Path) -> dict:
    """Returns the mapping that the file holds.

    Raises:
        UserError: There is no file, or it is no UTF-8, no YAML, no mapping, or too large or too
            deep to be meant.
    """
    text = _text(path)
    try:
        # whoever gets it may change it
        content = copy.deepcopy(_held(text))
    except UserError as error:
        raise UserError(f"{path} {error}") from None
    except YAMLError as error:
        raise UserError(f"{path} is not valid YAML{_told(error, text)}.") from None
    except (ValueError, KeyError) as error:
        # a tag such as !!bool, or a date, whose value is none
        raise UserError(f"{path} is not valid YAML: {error}.") from None
    if content is None:
        raise UserError(f"{path} is empty.")
    if not isinstance(content, dict):
        kind = {list: "a list"}.get(type(content), "a single value")
        raise UserError(
            f"{path} must hold a mapping, of names such as 'seed' and their values. "
            f"It holds {kind}."
        )
    return content


@functools.lru_cache(maxsize=64)
def _held(text: str) -> object:
    """Returns what a text holds. It is kept, for one process reads the same files many times.

    Raises:
        UserError: It is too large or too deep to be meant. The file's name is not in the sentence.
        YAMLError, ValueError, KeyError: It is no YAML.
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.Parser = MeasuringParser
    yaml.Constructor = Constructor
    # the parser refuses a second anchor of one name, in a sentence
    yaml.composer.warn_double_anchors = False
    return yaml.load(text)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise UserError(
            f"Could not read {path}: {error.strerror}. Run from the project's root."
        ) from None
    if len(content) > LARGEST:
        raise UserError(f"{path} is larger than {LARGEST:,} bytes, which no file of parameters is.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UserError(
            f"{path} is not valid YAML (line {line}): byte {content[error.start]:#04x} is no UTF-8."
        ) from None


@dataclass
class _Open:
    """Holds a mapping or a list before its end.

    Attributes:
        anchor: Its anchor, if it has one.
        values: The number of values in it so far, itself included.
        levels: The number of levels in it so far, itself included.
    """

    anchor: str | None
    values: int = 1
    levels: int = 1


class _Measure:
    """Measures how large and deep the file is once it is built.

    Attributes:
        blocks: The blocks that have not ended yet, the outermost first.
        named: {anchor: (values, levels)}, None before its end.
        lines: {anchor: the line of its block}.
    """

    def __init__(self):
        self.blocks: list[_Open] = []
        self.named: dict[str | None, tuple[int, int] | None] = {}
        self.lines: dict[str, int] = {}

    def see(self, event: events.Event, line: int) -> None:
        """Counts an event of the parser.

        Raises:
            UserError: The file is too deep or too large, or something is wrong with an anchor.
        """
        if isinstance(event, events.AliasEvent):
            self._add(self._stands_for(event.anchor, line), line)
        elif isinstance(event, events.ScalarEvent):
            self._name(event.anchor, (1, 0), line)
            self._add((1, 0), line)
        elif isinstance(event, events.MappingStartEvent | events.SequenceStartEvent):
            self._name(event.anchor, None, line)
            self.blocks.append(_Open(event.anchor))
            self._check_depth(len(self.blocks), line)
        elif isinstance(event, events.MappingEndEvent | events.SequenceEndEvent):
            block = self.blocks.pop()
            self.named[block.anchor] = block.values, block.levels
            self._add((block.values, block.levels), line)

    def _name(self, anchor: str | None, measured: tuple[int, int] | None, line: int) -> None:
        if anchor in self.lines:
            first = self.lines[anchor]
            raise UserError(
                f"has the anchor '&{anchor}' twice, in lines {first} and {line}: "
                "give one another name."
            )
        if anchor:
            self.named[anchor] = measured
            self.lines[anchor] = line

    def _stands_for(self, anchor: str, line: int) -> tuple[int, int]:
        # the parser reports an alias to nothing itself
        counted = self.named.get(anchor, (1, 0))
        if counted is None:
            raise UserError(f"has an alias inside of what it names, '*{anchor}' in line {line}.")
        return counted

    def _add(self, measured: tuple[int, int], line: int) -> None:
        """Adds a value that is whole to the block that it stands in."""
        values, levels = measured
        self._check_depth(len(self.blocks) + levels, line)
        if self.blocks:
            block = self.blocks[-1]
            block.values += values
            block.levels = max(block.levels, levels + 1)
            if block.values > MOST:
                raise UserError(
                    f"has more than {MOST:,} values, each alias counted as what it names, "
                    f"in line {line}."
                )

    def _check_depth(self, levels: int, line: int) -> None:
        if levels > DEEPEST:
            raise UserError(f"has more than {DEEPEST} blocks within one another, in line {line}.")


class MeasuringParser(Parser):
    """Parses as ruamel.yaml does, and checks how deep and large the file is so far.

    The composer takes each event from here, and nodes are shared by aliases. The constructor, which
    may not survive what is too deep, begins after the last event.
    """

    def __init__(self, loader: YAML):
        super().__init__(loader)
        self.measure = _Measure()

    def get_event(self) -> events.Event:
        """Returns the next event.

        Raises:
            UserError: The file is too deep or too large, or something is wrong with an anchor. The
                file's name is not in the sentence.
        """
        event = super().get_event()
        self.measure.see(event, event.start_mark.line + 1)
        return event


def _constructed(construct: Callable, node: ScalarNode) -> int | float:
    try:
        return construct(node)
    except ValueError:
        raise ConstructorError(
            None, None, f"found {node.value[:40]!r}, which is no number", node.start_mark
        ) from None


def _told(error: YAMLError, text: str) -> str:
    """Returns the line of a mistake, with ruamel.yaml's own words."""
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        said = (error.problem or error.context or "").partition(' with value "')[0]
        return f" (line {mark.line + 1}): {' '.join(said.split())}" if mark else f": {said}"
    line = text[: getattr(error, "position", 0)].count("\n") + 1
    return f" (line {line}): a character that YAML does not allow"
