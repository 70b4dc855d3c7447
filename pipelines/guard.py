"""Fails if anything outside the release list, or unknown to the ledgers, could reach a DVC remote or Git.

    python -m pipelines.guard        # exit 1 and a line per problem

An allow-list: a new output is private until it is named here. DVC's `push: false` alone is not enough: an uncached
output travels with `dvc exp push`, and DVC takes back its own .gitignore lines when a later stage fails.
"""

import fnmatch
import subprocess
import sys
from pathlib import Path

from pipelines import provenance

RELEASED = ("data/synthetic/*", "models/initial/*")
GENERATED = ("data", "models/private", "models/initial", "reports", "ledgers", ".scratch", "raw")
TRACKED = ("raw/README.md",)


def problems(root: Path = Path(".")) -> list[str]:
    """One sentence per problem; empty when nothing private can leave."""
    return [*_outputs(root), *_tracked(root), *_unignored(root), *_unprotected(root), *provenance.problems(root)]


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
    """Released outputs without a formal guarantee, as DVC would upload them."""
    return [
        f"{path} has no privacy guarantee and `dvc push` would upload it. Give its clients a finite "
        "epsilon, or take its generator out of synthesis.generators, and run `dvc repro` before any push."
        for path, card in provenance.cards(root)
        if card is not None and card.get("privacy", card)["guarantee"] != "formal"
    ]


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    return done.stdout.split("\n")[:-1]


if __name__ == "__main__":
    found = problems()
    print("\n".join(found) or "Nothing private can be pushed.")
    sys.exit(bool(found))
