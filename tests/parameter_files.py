"""The parameter files of a project as one mapping, and back: a test names a knob and not its file."""

import json
import shutil
from pathlib import Path

from ruamel.yaml import YAML

from pipelines.config.files import assemble
from pipelines.config.places import (
    CHOICES,
    PARAMS,
    PROFILES,
    SETTINGS,
    SHARED,
    all_files,
    profile_file,
    settings_file,
)

ROOT = Path(__file__).resolve().parents[1]


def shipped_content() -> dict:
    """Returns a fresh copy of what the shipped files come to; no block has a base any more."""
    return _copy(assemble(ROOT / PARAMS).content)


def copy_files(source: Path, target: Path) -> None:
    """Copies all parameter files of one folder into another."""
    for path in all_files(source):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / path, target / path)


def read(root: Path) -> dict:
    """Returns the contents of a project's files as one mapping; bases are left as they stand."""
    files = _contents(root)
    whole = {}
    for file in (*SETTINGS, PARAMS):
        for block, values in files[file].items():
            both = isinstance(values, dict) and isinstance(whole.get(block), dict)
            whole[block] = whole[block] | values if both else values
    names = [path for path in files if path.startswith(PROFILES)]
    whole[PROFILES] = {Path(name).stem: files[name] for name in names}
    return whole


def write(root: Path, whole: dict) -> None:
    """Writes a mapping back into the files where its knobs belong.

    A knob of a block that stands in params.yaml and in settings/ stays where it is.
    """
    before = _contents(root) if (root / PARAMS).exists() else {PARAMS: {}}
    for file, content in _split(_copy(whole), before[PARAMS]).items():
        if before.get(file) != content:
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            with (root / file).open("w") as out:
                YAML().dump(content, out)


def _split(whole: dict, params: dict) -> dict[str, dict]:
    """Returns {file: its content}.

    Args:
        whole: All settings.
        params: The content of params.yaml until now.
    """
    files = {PARAMS: {}, **{file: {} for file in SETTINGS}}
    for name, profile in whole.pop(PROFILES, {}).items():
        files[profile_file(name)] = profile
    for block, values in whole.items():
        file = settings_file(block) or PARAMS
        if file == PARAMS or not isinstance(values, dict):
            files[PARAMS if block in SHARED else file][block] = values
            continue
        above = set(params.get(block, {})) if block in SHARED else {CHOICES.get(block)}
        for key, value in values.items():
            files[PARAMS if key in above else file].setdefault(block, {})[key] = value
    return files


def _contents(root: Path) -> dict[str, dict]:
    yaml = YAML(typ="safe")
    return {str(path): yaml.load((root / path).read_text()) for path in all_files(root)}


def _copy(content: dict) -> dict:
    """Returns a copy in which no block is the same object as another one."""
    return json.loads(json.dumps(content))
