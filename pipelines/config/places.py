"""Says which file holds which block of settings: params.yaml, settings/*.yaml, profiles/NAME.yaml.

A place is fixed because DVC looks for a block in one file only (`params` in dvc.yaml). A block that
stood elsewhere would be read here and missed there, and DVC would serve a stale run.
"""

import re
from pathlib import Path

PARAMS = "params.yaml"
PROFILES = "profiles"
# {file: the blocks that it may hold}
SETTINGS = {
    "settings/generators.yaml": ("synthesis", "quality"),
    "settings/training.yaml": (
        "meta",
        "fine_tune",
        "baselines",
        "new_clients",
        "federation",
        "networks",
    ),
    "settings/dp.yaml": ("dp_baselines", "heads"),
}
# {block: its one key in params.yaml}, which says what of it runs: dvc.yaml reads lists there alone
CHOICES = {"synthesis": "generators", "baselines": "algorithms", "dp_baselines": "algorithms"}
# blocks that stand in params.yaml and in settings/: DVC looks at both
SHARED = ("quality", "meta", "fine_tune", "new_clients", "federation")
OWNER = re.compile(r"\((profile|network) (\w+)\)")


def settings_file(block: str) -> str | None:
    """Returns the file under settings/ that may hold a block, or None where none may.

    >>> settings_file("meta")
    'settings/training.yaml'
    """
    for file, blocks in SETTINGS.items():
        if block in blocks:
            return file
    return None


def profile_file(dataset: str) -> str:
    """Returns the file of a data set's profile."""
    return f"{PROFILES}/{dataset}.yaml"


def belongs_in(path: tuple) -> str:
    """Returns the file in which the value at `path`, such as ("baselines", "fedprox"), belongs.

    A block of params.yaml and of settings/ counts as the latter's here: which of the two holds a
    value is known where the files were read (`files.Assembled.file`).

    >>> belongs_in(("synthesis", "generators"))
    'params.yaml'
    """
    block = path[0] if path else ""
    if block == PROFILES and len(path) > 1:
        return profile_file(path[1])
    file = settings_file(block)
    if file is None or path[1:2] == (CHOICES.get(block),):
        return PARAMS
    return file


def file_of(where: str) -> str:
    """Returns the file of a value, by the dotted path that an error's sentence gives.

    A value that a data set or a network has of its own bears its owner in brackets. A setting of a
    method may stand in the method's block or in a profile.

    >>> file_of("profiles.digits.shape")
    'profiles/digits.yaml'
    >>> file_of("fedprox (profile mnist).mu")
    'profiles/mnist.yaml'
    >>> file_of("dp_baselines.ali.noise_multiplier")
    'settings/dp.yaml, or the profile'
    """
    owner = OWNER.search(where)
    if owner is None:
        path = tuple(where.split("."))
        file = belongs_in(path)
        return f"{file}, or the profile" if path[0] in CHOICES and file != PARAMS else file
    return profile_file(owner[2]) if owner[1] == "profile" else belongs_in(("networks",))


def all_files(root: Path) -> list[Path]:
    """Returns the paths of all parameter files of a project, relative to it.

    Args:
        root: The project's folder.
    """
    profiles = sorted((root / PROFILES).glob("*.yaml"))
    named = [Path(PARAMS), *map(Path, SETTINGS)]
    return [*named, *(path.relative_to(root) for path in profiles)]
