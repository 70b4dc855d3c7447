"""Fails if anything outside the release list, or unknown to the ledgers, could reach a DVC remote or Git.

    python -m pipelines.guard        # exit 1 and a line per problem

An allow-list: a new output is private until it is named here. DVC's `push: false` alone is not enough: an uncached
output travels with `dvc exp push`, and DVC takes back its own .gitignore lines when a later stage fails. Private keys
and other secrets are looked for in every file that Git would take (keys.py), wherever it lies.
"""

import contextlib
import fnmatch
import sys
from collections.abc import Iterator
from pathlib import Path

from pipelines import keys, paths, provenance, repository, uploads
from pipelines.errors import UserError, told_in_a_sentence

RELEASED = ("data/synthetic/*", "models/initial/*")
OF_DVC = (".dvc/cache", ".dvc/tmp")
GENERATED = (
    "data",
    "models/private",
    "models/initial",
    "reports",
    "ledgers",
    ".scratch",
    "raw",
    "kits",
    *OF_DVC,
)
TRACKED = ("raw/README.md",)


def problems(root: Path = Path(".")) -> list[str]:
    """One sentence per problem; empty when nothing private can leave."""
    from dvc.exceptions import DvcException

    sentences = []
    of_git = (_tracked, _unignored, _placed, _secrets)
    for check in (_outputs, *of_git, _unprotected, uploads.problems, provenance.problems):
        try:
            sentences += check(root)
        except UserError as error:
            sentences.append(str(error))
        except DvcException as error:
            sentences.append(
                f"DVC cannot read this project: {error}. If a crash left it so, `make recover` mends it."
            )
    # several checks read params.yaml, and each would tell the same mistake
    return list(dict.fromkeys(sentences))


def _outputs(root: Path) -> list[str]:
    from dvc.repo import Repo

    sentences = []
    with Repo(str(root)) as repo:
        for out in repo.index.outs:
            path = repo.fs.relpath(out.fs_path, repo.root_dir)
            if any(fnmatch.fnmatch(path, pattern) for pattern in RELEASED):
                continue
            if out.can_push:
                sentences.append(
                    f"{path} ({out.stage.addressing}) is not on the release list and lacks `push: false`."
                )
            if not out.use_cache:
                sentences.append(
                    f"{path} is private and `cache: false`: `dvc exp push` would put it into Git."
                )
    return sentences


def _tracked(root: Path) -> list[str]:
    """Generated or private files that Git tracks."""
    return [
        f"{path} is tracked by Git."
        for path in repository.tracked(root, *GENERATED)
        if path not in TRACKED
    ]


def _unignored(root: Path) -> list[str]:
    """Private folders that the static .gitignore does not cover. Git takes nothing of what a link leads to."""
    probes = [f"{folder}/probe" for folder in GENERATED if not (root / folder).is_symlink()]
    ignored = repository.ignored(root, probes)
    return [
        f"{probe} would be added by `git add -A`: .gitignore misses it."
        for probe in probes
        if probe not in ignored
    ]


def _placed(root: Path) -> list[str]:
    """Private folders that a user has put where Git would add them, in this repository or in another."""
    from dvc.repo import Repo

    with contextlib.chdir(root), Repo(".") as repo:
        places = {
            f"the ledgers ({paths.LEDGERS})": paths.ledgers(),
            "DVC's cache": Path(repo.cache.local_cache_dir),
        }
        known = [Path(folder).resolve() for folder in GENERATED]
        return [
            f"{place}, the folder of {what}, would be added by `git add -A`. Name it in .gitignore, or move it."
            for what, place in places.items()
            if place.resolve() not in known and repository.would_add(place)
        ]


def _secrets(root: Path) -> Iterator[str]:
    """Private keys and files of secrets that Git tracks or would add, in the working tree or already staged."""
    files = [name for name in repository.takes(root) if _is_plain(root / name)]
    secrets = [place for name in files for place in keys.found(root / name, name)]
    for name, content in repository.staged_apart(root):
        secrets += keys.found_in(content, name)
    for where, what in secrets:
        yield (
            f"{where} {what}, and Git tracks it or would add it. Move it out of the checkout, untrack it with "
            "`git rm --cached`, and make a new key if this one has left the machine."
        )


def _is_plain(path: Path) -> bool:
    """Git keeps of a link its target's name alone, and of another repository a commit's."""
    return path.is_file() and not path.is_symlink()


def _unprotected(root: Path) -> list[str]:
    """Released outputs without a formal guarantee, as DVC would upload them."""
    return [
        f"{path} has no privacy guarantee and `dvc push` would upload it. Give its clients a finite "
        "epsilon, or take its generator out of synthesis.generators, and run `dvc repro` before any push."
        for path, card in provenance.cards(root)
        if card is not None and card.get("privacy", card).get("guarantee") != "formal"
    ]


if __name__ == "__main__":
    with told_in_a_sentence():
        sentences = problems()
    print("\n".join(sentences) or "Nothing private can be pushed.")
    sys.exit(bool(sentences))
