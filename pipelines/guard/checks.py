"""Checks that nothing outside the release list, and nothing unknown to the ledgers, could leave.

This is an allow-list: a new output is private until it is named here. DVC's `push: false` alone is
not enough. An uncached output travels with `dvc exp push`, and DVC takes back its own .gitignore
lines when a later stage fails. Private keys and other secrets are looked for in every file that Git
would take (`keys`), wherever it lies.
"""

import contextlib
import fnmatch
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines import paths
from pipelines.errors import UserError
from pipelines.guard import keys, provenance, repository, uploads

if TYPE_CHECKING:
    from dvc.repo import Repo

RELEASED = ("data/synthetic/*", "models/initial/*")
OF_DVC = (".dvc/cache", ".dvc/tmp")
GENERATED = (
    "data",
    "models/private",
    "models/initial",
    "reports",
    "scores",
    "ledgers",
    ".scratch",
    "raw",
    "kits",
    *OF_DVC,
)
TRACKED = ("raw/README.md",)


def problems(root: Path = Path(".")) -> list[str]:
    """Returns a sentence per problem. The list is empty when nothing private can leave.

    Args:
        root: The checkout.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    sentences = []
    with contextlib.ExitStack() as closing:
        # DVC's graph takes a second to read, so all checks have it from here
        repo = cache(lambda: closing.enter_context(Repo(str(root))))
        outputs = cache(lambda: list(uploads.cached(repo())))
        for check in (
            lambda: _outputs(repo()),
            lambda: _tracked(root),
            lambda: _unignored(root),
            lambda: _placed(root, repo()),
            lambda: _secrets(root),
            lambda: _unprotected(outputs()),
            lambda: uploads.problems(root, outputs()),
            lambda: provenance.problems(root, outputs()),
        ):
            try:
                sentences += check()
            except UserError as error:
                sentences.append(str(error))
            except DvcException as error:
                sentences.append(
                    f"DVC cannot read this project: {error}. If a crash left it so, `make recover` "
                    "mends it."
                )
    # several checks read params.yaml, and each would report the same mistake
    return list(dict.fromkeys(sentences))


def _outputs(repo: "Repo") -> list[str]:
    """Finds private outputs that a push, or an experiment's push, would take."""
    sentences = []
    for out in repo.index.outs:
        path = repo.fs.relpath(out.fs_path, repo.root_dir)
        if _is_released(path):
            continue
        if out.can_push:
            sentences.append(
                f"{path} ({out.stage.addressing}) is not on the release list and lacks "
                "`push: false`."
            )
        if not out.use_cache:
            sentences.append(
                f"{path} is private and `cache: false`: `dvc exp push` would put it into Git."
            )
    return sentences


def _is_released(path: str) -> bool:
    """Returns whether an output is on the list of what may leave."""
    return any(fnmatch.fnmatch(path, pattern) for pattern in RELEASED)


def _tracked(root: Path) -> list[str]:
    """Finds generated or private files that Git tracks."""
    names = repository.tracked(root, *GENERATED)
    return [f"{name} is tracked by Git." for name in names if name not in TRACKED]


def _unignored(root: Path) -> list[str]:
    """Finds private folders that the static .gitignore does not cover.

    A folder that is a link is left out, because Git takes nothing of what a link leads to.
    """
    probes = [f"{folder}/probe" for folder in GENERATED if not (root / folder).is_symlink()]
    ignored = repository.ignored(root, probes)
    sentences = []
    for probe in probes:
        if probe not in ignored:
            sentences.append(f"{probe} would be added by `git add -A`: .gitignore misses it.")
    return sentences


def _placed(root: Path, repo: "Repo") -> list[str]:
    """Finds private folders that a user has put where Git would add them, in any repository."""
    sentences = []
    with contextlib.chdir(root):
        places = {
            f"the ledgers ({paths.LEDGERS})": paths.ledgers(),
            "DVC's cache": Path(repo.cache.local_cache_dir),
        }
        usual = [Path(folder).resolve() for folder in GENERATED]
        for content, place in places.items():
            if place.resolve() not in usual and repository.would_add(place):
                sentences.append(
                    f"{place}, the folder of {content}, would be added by `git add -A`. Name it in "
                    ".gitignore, or move it."
                )
    return sentences


def _secrets(root: Path) -> Iterator[str]:
    """Finds private keys and files of secrets that Git tracks or would add.

    It reads the working tree and what is staged already.
    """
    secrets = []
    for name in repository.takes(root):
        if _is_plain(root / name):
            secrets += keys.search_file(root / name, name)
    for name, content in repository.staged_apart(root):
        secrets += keys.search_content(content, name)
    for where, finding in secrets:
        yield (
            f"{where} {finding}, and Git tracks it or would add it. Move it out of the checkout, "
            "untrack it with `git rm --cached`, and make a new key if this one has left the "
            "machine."
        )


def _is_plain(path: Path) -> bool:
    """Returns whether Git takes the content of a file.

    Git stores only the target's name of a link, and only a commit's name of another repository.
    """
    return path.is_file() and not path.is_symlink()


def _unprotected(outputs: list[uploads.Upload]) -> list[str]:
    """Finds released outputs without a formal guarantee, as DVC would upload them."""
    sentences = []
    for path, card in provenance.cards(outputs):
        if card is not None and card.get("privacy", card).get("guarantee") != "formal":
            sentences.append(
                f"{path} has no privacy guarantee and `dvc push` would upload it. Give its clients "
                "a finite epsilon, or take its generator out of synthesis.generators, and run "
                "`dvc repro` before any push."
            )
    return sentences
