"""Reads the results of methods in the workspace, in `dvc exp` runs and in revisions of Git.

What a revision's dvc.lock names is read in DVC's cache. No remote is asked.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import UserError
from pipelines.files import read_json, require

WORKSPACE = "workspace"
RESULTS = "results.json"
# the folders of results, by the fields that every one of them has
PLACES = ("models/private/personal", "models/private/baselines", "models/private/dp_baselines")
FIELDS = ("clients", "epsilon_max", "guarantee")
SCORED = ("after", "global_after")


@dataclass(frozen=True)
class Found:
    """Holds the results of one method.

    Attributes:
        path: Where they lie in that run.
        content: Of the file.
    """

    path: str
    content: dict


def results(root: Path, names: list[str]) -> dict[str, dict[tuple[str, str], Found]]:
    """Returns {run: {(data set, method): its results}}. Methods that were left out have none.

    Args:
        root: The project.
        names: Of `dvc exp` runs, revisions of Git, or `workspace`.

    Raises:
        UserError: There is no such run, it has no results, or the cache lacks some.
    """
    with _opened(root) as repo:
        by_method = {}
        for name in names:
            by_method[name] = _of_run(repo, name)
            if not by_method[name]:
                raise UserError(
                    f"{name!r} has no results of any method: none of its stages that train ran. "
                    f"{_where(name)}"
                )
        return by_method


@contextmanager
def _opened(root: Path) -> Iterator[Any]:
    """Yields DVC's repository, and turns its errors into one sentence."""
    # takes half a second to import, which a help text need not wait for
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from scmrepo.exceptions import SCMError

    try:
        with Repo(str(root)) as repo:
            yield repo
    except (DvcException, SCMError) as error:
        sentence = " ".join(str(error).split()).rstrip(".")
        raise UserError(f"DVC cannot read the project: {sentence}.") from None


def _of_run(repo: Any, name: str) -> dict[tuple[str, str], Found]:
    if name == WORKSPACE:
        return _in_workspace(repo)
    with repo.switch(_revision(repo, name)):
        return _in_cache(repo, name)


def _revision(repo: Any, name: str) -> str:
    """Returns the commit of a `dvc exp` run, or of a revision.

    Raises:
        UserError: There is neither.
    """
    from dvc.repo.experiments.exceptions import AmbiguousExpRefInfo, InvalidExpRefError
    from dvc.repo.experiments.utils import resolve_name
    from scmrepo.exceptions import SCMError

    try:
        experiment = resolve_name(repo.scm, [name])[name]
        return repo.scm.resolve_rev(str(experiment) if experiment else name)
    except AmbiguousExpRefInfo:
        raise UserError(
            f"{name!r} names several experiments of other commits: give the revision instead. "
            "`dvc exp list --all-commits` shows it."
        ) from None
    except (SCMError, InvalidExpRefError):
        raise UserError(
            f"There is no run {name!r}: neither a `dvc exp` run nor a revision of Git has that "
            "name. `dvc exp list --all-commits` names the runs."
        ) from None


def _in_workspace(repo: Any) -> dict[tuple[str, str], Found]:
    """Returns the results that lie in the working tree, of the stages that its parameters name."""
    by_method = {}
    for out in _outs(repo):
        folder = Path(out.fs_path)
        for file in sorted(folder.glob(f"*/{RESULTS}")):
            path = file.relative_to(repo.root_dir)
            _add(by_method, Found(str(path), read_json(file)))
    return by_method


def _in_cache(repo: Any, name: str) -> dict[tuple[str, str], Found]:
    """Returns the results that DVC's cache holds of the revision at hand.

    Raises:
        UserError: The cache lacks a file that this revision names.
    """
    by_method = {}
    for out in _outs(repo):
        # a stage that did not run has no hash
        if not out.hash_info:
            continue
        folder = _relative(repo, out)
        listed = out.get_obj()
        if listed is None:
            raise _gone(name, folder)
        for key, _, info in listed:
            if key[-1] == RESULTS:
                path = "/".join((folder, *key))
                blob = Path(out.cache.oid_to_path(info.value))
                if not blob.exists():
                    raise _gone(name, path)
                _add(by_method, Found(path, _parsed(blob, path, name)))
    return by_method


def _outs(repo: Any) -> list:
    """Returns the outputs that hold results, of the stages of the revision at hand."""
    return [out for out in repo.index.outs if _relative(repo, out).startswith(PLACES)]


def _relative(repo: Any, out: Any) -> str:
    return repo.fs.relpath(out.fs_path, repo.root_dir)


def _add(by_method: dict[tuple[str, str], Found], method: Found) -> None:
    """Adds the results of a method that ran. Their folder is called as the method, with a dash."""
    if "left_out" in method.content:
        return
    require(Path(method.path), method.content, *FIELDS)
    for scored in method.content["clients"].values():
        require(Path(method.path), scored, *SCORED)
    *_, dataset, _, folder, _ = Path(method.path).parts
    by_method[dataset, folder.replace("-", "/", 1)] = method


def _parsed(blob: Path, path: str, name: str) -> dict:
    try:
        return json.loads(blob.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"{path} of {name!r} cannot be read in DVC's cache: {error}.") from None


def _gone(name: str, path: str) -> UserError:
    return UserError(
        f"DVC's cache lacks {path} of {name!r}: it was removed (`dvc gc`), or made in another "
        f"checkout. {_where(name)}"
    )


def _where(name: str) -> str:
    """Returns a sentence on how to have the results."""
    if name == WORKSPACE:
        return "Run `make repro`."
    return (
        "Where they ran in the working tree, commit `dvc.lock`, or compare with `workspace`. Else "
        "bring it back (`dvc exp apply` or `git checkout`), and run `make repro`."
    )
