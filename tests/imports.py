"""Finds which of this project's modules a module imports, directly or through others.

It reads the source and runs nothing.
"""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = ("stages", "pipelines", "models", "audits")


def module_file(name: str) -> Path | None:
    """Returns the file of a module: a/b/c.py for `a.b.c`, or a/b/c/__init__.py if that is not
    empty.
    """
    path = ROOT / name.replace(".", "/")
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.exists() and file.stat().st_size), None)


@cache
def imported(path: Path) -> frozenset[Path]:
    """Returns the project's files that this file names in an import, at any depth of indentation."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        found |= {
            file for name in names if name.split(".")[0] in OURS and (file := module_file(name))
        }
    return frozenset(found)


def closure(start: Path) -> set[Path]:
    """Returns every file of the project that `start` reaches, itself included."""
    seen = set()
    todo = [start]
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += imported(path)
    return seen
