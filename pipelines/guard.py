"""Fails if anything outside the release list could reach a DVC remote or Git.

    python -m pipelines.guard        # exit 1 and a line per problem

An allow-list: a new output is private until it is named here. DVC's `push: false` alone is not enough: an uncached
output travels with `dvc exp push`, and DVC takes back its own .gitignore lines when a later stage fails.
"""

import fnmatch
import json
import subprocess
import sys
from pathlib import Path

RELEASED = ("data/synthetic/*", "models/initial/*")
GENERATED = ("data", "models/private", "models/initial", "reports", ".scratch", "raw")
TRACKED = ("raw/README.md",)


def problems(root: Path = Path(".")) -> list[str]:
    """One sentence per problem; empty when nothing private can leave."""
    return [*_outputs(root), *_tracked(root), *_unignored(root), *_unprotected_exports(root)]


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


def _unprotected_exports(root: Path) -> list[str]:
    """Exports without a formal guarantee: `dvc push` would upload them like any other."""
    found = []
    for path in sorted((root / "data" / "synthetic").glob("*/*/*/card.json")):
        privacy = json.loads(path.read_text())["privacy"]
        if privacy["guarantee"] != "formal":
            found.append(f"{path.parent.relative_to(root)} has no privacy guarantee; remove it before any push.")
    return found


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    return done.stdout.split("\n")[:-1]


if __name__ == "__main__":
    found = problems()
    print("\n".join(found) or "Nothing private can be pushed.")
    sys.exit(bool(found))
