"""Tells where all ledgers lie: in `ledgers`, or where FEDLENS_LEDGERS says.

The stages and the command `python -m pipelines.privacy.ledger` share this rule. It stands apart
from the package `ledger`, so that a stage that names no release imports no accountant.
"""

import os
from pathlib import Path

# of the environment
VARIABLE = "FEDLENS_LEDGERS"
USUAL = Path("ledgers")
# DVC runs `dvc exp run --temp` and `--queue` below this folder, and deletes what lies there. If the
# folder is a link, DVC runs no stage.
TEMPORARY = (".dvc", "tmp")


class LedgerError(Exception):
    """Says in a sentence why a ledger is unusable.

    Its file is damaged, it refuses a release, or there is no lasting place for it.
    """


def chosen() -> Path:
    """Returns the folder of ledgers. An empty FEDLENS_LEDGERS counts as none.

    Raises:
        LedgerError: What is charged there would be deleted with the folder of an experiment. That
            is so where a run has a folder of its own and no absolute path is set, and wherever the
            folder lies below `.dvc/tmp`.
    """
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named else USUAL
    if not folder.is_absolute() and _is_temporary(Path.cwd()):
        setting = f"Got {named!r} instead." if named else "It is not set."
        raise LedgerError(
            f"A run in a folder of its own (`dvc exp run --temp` or `--queue`) would charge no "
            f"ledger that stays: set {VARIABLE} to the project's, as an absolute path. {setting}"
        )
    if _is_temporary(folder.resolve()):
        raise LedgerError(
            f"{VARIABLE} must name a folder that stays. Got {str(folder)!r} instead, which lies "
            f"below {'/'.join(TEMPORARY)}, where DVC deletes folders."
        )
    return folder


def _is_temporary(path: Path) -> bool:
    """Returns True if the path lies in a folder that DVC deletes."""
    return TEMPORARY in zip(path.parts, path.parts[1:])
