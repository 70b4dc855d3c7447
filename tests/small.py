"""Makes a project of two outputs that may leave and one that may not, for the guard to read.

None of them is made.
"""

import shutil
from pathlib import Path

import parameter_files
from project import ROOT, Project

EXPORT = "data/synthetic/own/c0/dp_moments"
INITIAL = "models/initial/own/dp_moments"
PRIVATE = "models/private/own"
GRAPH = f"""\
stages:
  export_synthetic: {{cmd: 'true', outs: [{EXPORT}]}}
  meta_train: {{cmd: 'true', outs: [{INITIAL}]}}
  train:
    cmd: 'true'
    outs:
      - {PRIVATE}: {{push: false}}
"""
SHIPPED = (".gitignore", ".dvc/.gitignore", ".dvc/config", "raw/README.md")


def made(path: Path) -> Project:
    """Makes the project in `path`, an empty folder."""
    project = Project(path)
    for name in SHIPPED:
        (path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, path / name)
    parameter_files.copy_files(ROOT, path)
    (path / "dvc.yaml").write_text(GRAPH)
    project.git("init", "-q", "-b", "main")
    project.git("add", "-A")
    return project
