"""Which of our modules a module imports, directly or through others: read from the source, nothing
is run.
"""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = ("stages", "pipelines", "models", "audits")


def module_file(name: str) -> Path | None:
    """`a.b.c` -> a/b/c.py, or a/b/c/__init__.py where there is anything in it."""
    path = ROOT / name.replace(".", "/")
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.exists() and file.stat().st_size), None)


@cache
def imported(path: Path) -> frozenset[Path]:
    """Files of ours that this file names in an import, at any depth of indentation."""
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
    """Every file of ours that `start` reaches, itself included."""
    seen = set()
    todo = [start]
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += imported(path)
    return seen
