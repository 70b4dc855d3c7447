"""Reads the parameter files as one set of settings, and notes where each value stands."""

from dataclasses import dataclass, field
from pathlib import Path

from pipelines.config.bases import with_bases
from pipelines.config.places import (
    CHOICES,
    PARAMS,
    PROFILES,
    SETTINGS,
    SHARED,
    belongs_in,
    profile_file,
    settings_file,
)
from pipelines.config.values import nearest, shown
from pipelines.config.yaml_reader import read
from pipelines.errors import UserError


@dataclass
class Assembled:
    """Holds the contents of all parameter files as one mapping.

    Attributes:
        content: What `Params` is made of; no block has a `base` any more.
        files: {path of a value: its file}, if that is not the file in which its block belongs.
        inherited: {path of a value: its path at the base}.
    """

    content: dict
    files: dict[tuple, str] = field(default_factory=dict)
    inherited: dict[tuple, tuple] = field(default_factory=dict)

    def source(self, path: tuple) -> tuple:
        """Returns where the value at `path` is written: the same path, or one at a base."""
        for length in range(len(path), 0, -1):
            origin = self.inherited.get(path[:length])
            if origin:
                return self.source((*origin, *path[length:]))
        return path

    def file(self, path: tuple) -> str:
        """Returns the file in which the value at `path` is written."""
        written = self.source(path)
        for length in range(len(written), 0, -1):
            if written[:length] in self.files:
                return self.files[written[:length]]
        return belongs_in(written)


def assemble(path: Path) -> Assembled:
    """Reads params.yaml and the files of settings/ and profiles/ beside it.

    Args:
        path: The path of params.yaml.

    Raises:
        UserError: A file is absent or no YAML, or holds a block that DVC does not look for there;
            or a block's base is none.
    """
    root = path.parent
    params = read(path)
    _check_places(params, PARAMS)
    assembled = Assembled({})
    for file in SETTINGS:
        settings = read(root / file)
        _check_places(settings, file)
        assembled.content |= settings
    for block, values in params.items():
        _lay(assembled, block, values)
    assembled.content[PROFILES] = _profiles(root)
    _resolve_bases(assembled)
    return assembled


def _check_places(content: dict, file: str) -> None:
    """Checks that a file holds only blocks for which DVC looks there.

    Raises:
        UserError: In one sentence.
    """
    for block, values in content.items():
        if not isinstance(block, str):
            continue
        right = settings_file(block) or PARAMS
        if block == PROFILES:
            raise UserError(
                f"The 'profiles' parameter is not for {file}: each profile stands in a file of its "
                f"own, profiles/NAME.yaml. ({file})"
            )
        if file == PARAMS and block in CHOICES:
            _check_keys(block, values, right, allowed=CHOICES[block])
        elif file == PARAMS and right != PARAMS and block not in SHARED:
            raise _misplaced(block, "", right, file)
        elif file != PARAMS and right != file:
            raise _stray(block, right, file)
        elif file != PARAMS and block in CHOICES and _holds(values, CHOICES[block]):
            raise _misplaced(CHOICES[block], block, PARAMS, file)


def _check_keys(block: str, values: object, right: str, *, allowed: str) -> None:
    """Checks that params.yaml names of a block only which of its methods run."""
    for key in values if isinstance(values, dict) else ():
        if key != allowed:
            raise _misplaced(str(key), block, right, PARAMS)


def _holds(values: object, key: str) -> bool:
    return isinstance(values, dict) and key in values


def _misplaced(name: str, block: str, right: str, file: str) -> UserError:
    of = f" of {block}" if block else ""
    return UserError(
        f"The {shown(name)} parameter{of} belongs in {right}, where DVC looks for it. ({file})"
    )


def _stray(block: str, right: str, file: str) -> UserError:
    """Returns the error for a block that a file under settings/ may not hold."""
    if right != PARAMS:
        return _misplaced(block, "", right, file)
    near = nearest(block, list(SETTINGS[file]))
    hint = f"did you mean {near!r}?" if near else f"here stand {', '.join(SETTINGS[file])}."
    return UserError(f"The {shown(block)} parameter is unknown, {hint} ({file})")


def _lay(assembled: Assembled, block: object, values: object) -> None:
    """Lays a block of params.yaml over the same block of settings/, key by key."""
    below = assembled.content.get(block)
    if not (isinstance(below, dict) and isinstance(values, dict)):
        assembled.content[block] = values
        assembled.files[(block,)] = PARAMS
        return
    assembled.content[block] = {**below, **values}
    for key in values:
        assembled.files[(block, key)] = PARAMS


def _profiles(root: Path) -> dict[str, dict]:
    """Returns the profile of each file in profiles/, by the file's name."""
    names = sorted(path.stem for path in (root / PROFILES).glob("*.yaml"))
    return {name: read(root / profile_file(name)) for name in names}


def _resolve_bases(assembled: Assembled) -> None:
    content = assembled.content
    meta = {"meta": content.get("meta")}
    for block in ("synthesis", "baselines", "dp_baselines", "networks"):
        _resolve(assembled, content, (block,), meta if block == "baselines" else {})
    for name, profile in content[PROFILES].items():
        for block in ("synthesis", "training"):
            _resolve(assembled, profile, (PROFILES, name, block), {})


def _resolve(assembled: Assembled, owner: dict, path: tuple[str, ...], outside: dict) -> None:
    group = owner.get(path[-1])
    if isinstance(group, dict):
        owner[path[-1]] = with_bases(group, path, outside, assembled.inherited.__setitem__)
