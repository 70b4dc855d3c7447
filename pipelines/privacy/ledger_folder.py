"""The folder of all ledgers: `ledgers`, or where FEDLENS_LEDGERS says. One rule for the stages and for the command."""

import os
from pathlib import Path

from pipelines.privacy.errors import LedgerError

VARIABLE = "FEDLENS_LEDGERS"  # of the environment
USUAL = Path("ledgers")
# DVC runs `dvc exp run --temp` and `--queue` below it, and deletes such folders; where it is a link it runs no stage
TEMPORARY = (".dvc", "tmp")


def chosen() -> Path:
    """The folder of ledgers. An empty FEDLENS_LEDGERS counts as none.

    Raises:
        LedgerError: what is charged there would be deleted with the folder of an experiment. That is so where a run
            has a folder of its own and no absolute path is set, and wherever the folder lies below `.dvc/tmp`.
    """
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named else USUAL
    if not folder.is_absolute() and _is_temporary(Path.cwd()):
        found = f"Got {named!r} instead." if named else "It is not set."
        raise LedgerError(
            f"A run in a folder of its own (`dvc exp run --temp` or `--queue`) would charge no ledger that stays: set "
            f"{VARIABLE} to the project's, as an absolute path. {found}"
        )
    if _is_temporary(folder.resolve()):
        raise LedgerError(
            f"{VARIABLE} must name a folder that stays. Got {str(folder)!r} instead, which lies below "
            f"{'/'.join(TEMPORARY)}, where DVC deletes folders."
        )
    return folder


def _is_temporary(path: Path) -> bool:
    return TEMPORARY in zip(path.parts, path.parts[1:])
