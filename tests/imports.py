"""Finds which of this project's modules a module imports, directly or through others.

It reads the source and runs nothing.
"""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = ("stages", "pipelines", "models", "audits", "benchmarks", "experiments")


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
    files = set()
    for node in ast.walk(ast.parse(path.read_text())):
        for name in imported_names(node):
            if name.split(".")[0] in OURS and (file := module_file(name)):
                files.add(file)
    return frozenset(files)


def imported_names(node: ast.AST) -> list[str]:
    """Returns the names that a statement may import as modules."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


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


def packages() -> list[Path]:
    """Returns every folder of ours that holds modules."""
    folders = {file.parent for name in OURS for file in (ROOT / name).rglob("*.py")}
    return sorted(folders)


def units(package: Path) -> dict[str, set[str]]:
    """Returns which parts of a package each of its parts imports.

    A part is a module of the package, or a package below it.
    """
    arrows = {}
    for file in package.rglob("*.py"):
        if not file.stat().st_size:
            continue
        part = _part(file, package)
        arrows.setdefault(part, set())
        for other in imported(file):
            if other.is_relative_to(package):
                arrows[part].add(_part(other, package))
    for part in arrows:
        arrows[part] -= {part, "__init__"}
    return arrows


def _part(file: Path, package: Path) -> str:
    return file.relative_to(package).parts[0].removesuffix(".py")


def floors(arrows: dict[str, set[str]]) -> list[set[str]]:
    """Returns the parts in floors: each part imports from lower floors alone.

    Raises:
        AssertionError: some parts import one another in a circle.
    """
    rest = dict(arrows)
    stacked = []
    while rest:
        floor = {part for part, others in rest.items() if not others & set(rest)}
        assert floor, f"a circle of imports among {sorted(rest)}"
        stacked.append(floor)
        for part in floor:
            del rest[part]
    return stacked
