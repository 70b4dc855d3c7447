"""Fails if anything outside the release list could reach a DVC remote or Git.

    python -m pipelines.guard        # exit 1 and a line per problem

An allow-list: a new output is private until it is named here. DVC's `push: false` alone is not enough: an uncached
output travels with `dvc exp push`, and DVC takes back its own .gitignore lines when a later stage fails.
"""

import fnmatch
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

RELEASED = ("data/synthetic/*", "models/initial/*")
GENERATED = ("data", "models/private", "models/initial", "reports", "ledgers", ".scratch", "raw")
TRACKED = ("raw/README.md",)


def problems(root: Path = Path(".")) -> list[str]:
    """One sentence per problem; empty when nothing private can leave."""
    return [*_outputs(root), *_tracked(root), *_unignored(root), *_unprotected(root)]


def _outputs(root: Path) -> list[str]:
    from dvc.repo import Repo

    found = []
    with Repo(str(root)) as repo:
        for out in repo.index.outs:
            path = repo.fs.relpath(out.fs_path, repo.root_dir)
            if any(fnmatch.fnmatch(path, pattern) for pattern in RELEASED):
                continue
            if out.can_push:
                found.append(f"{path} ({out.stage.addressing}) is not on the release list and lacks `push: false`.")
            if not out.use_cache:
                found.append(f"{path} is private and `cache: false`: `dvc exp push` would put it into Git.")
    return found


def _tracked(root: Path) -> list[str]:
    """Generated or private files that Git tracks."""
    listed = _git(root, "ls-files", "--", *GENERATED)
    return [f"{path} is tracked by Git." for path in listed if path not in TRACKED]


def _unignored(root: Path) -> list[str]:
    """Private folders that the static .gitignore does not cover."""
    probes = [f"{folder}/probe" for folder in GENERATED]
    ignored = set(_git(root, "check-ignore", "--no-index", *probes))
    return [
        f"{probe} would be added by `git add -A`: .gitignore misses it." for probe in probes if probe not in ignored
    ]


def _unprotected(root: Path) -> list[str]:
    """Released outputs without a formal guarantee, as DVC would upload them: from its cache, by dvc.lock."""
    from dvc.repo import Repo

    found = []
    with Repo(str(root)) as repo:
        for out in repo.index.outs:
            if out.can_push and out.hash_info and any(guarantee != "formal" for guarantee in _guarantees(out)):
                path = repo.fs.relpath(out.fs_path, repo.root_dir)
                found.append(
                    f"{path} has no privacy guarantee and `dvc push` would upload it. Give its clients a finite "
                    "epsilon, or take its generator out of synthesis.generators, and run `dvc repro` before any push."
                )
    return found


def _guarantees(out) -> Iterator[str]:
    """What card.json (an export) or privacy.json (an initial model) of a cached folder say."""
    tree = out.get_obj()
    for key, _, hash_info in tree or ():
        if key[-1] in ("card.json", "privacy.json"):
            content = json.loads(Path(out.cache.oid_to_path(hash_info.value)).read_text())
            yield content.get("privacy", content)["guarantee"]


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    return done.stdout.split("\n")[:-1]


if __name__ == "__main__":
    found = problems()
    print("\n".join(found) or "Nothing private can be pushed.")
    sys.exit(bool(found))
