"""The examples in docstrings run and print what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules_with_examples() -> list[str]:
    """Returns the names of all modules of the product and the experiments whose text holds an example."""
    names = []
    for folder in ("pipelines", "models", "audits", "stages", "experiments"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(ROOT).with_suffix("").parts
                names.append(".".join(parts).removesuffix(".__init__"))
    return names


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_print_what_they_say(name, tmp_path, monkeypatch):
    # an example may write files, and finds an empty folder
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert result.attempted
    assert not result.failed
