"""Plants the bugs one after the other.

make mutants         # mutant, test, caught or not; exit 1 if one survives or a test fails alone
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from project import ENV, copy_tree

from mutants import MUTANTS
from mutants.mutant import Mutant

SOME_TEST_FAILED = 1


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "fedlens"
        copy_tree(copy)
        # tests that make a checkout ask Git for the files
        subprocess.run(["git", "init", "--quiet"], cwd=copy, check=True)
        subprocess.run(["git", "add", "--all"], cwd=copy, check=True)
        survivors = [mutant.name for mutant in MUTANTS if not caught(mutant, copy)]
    print(f"{len(MUTANTS) - len(survivors)} of {len(MUTANTS)} caught")
    sys.exit(bool(survivors))


def caught(mutant: Mutant, copy: Path) -> bool:
    """Returns whether the named test passes on the whole code and fails on the mutant."""
    file = copy / mutant.file
    whole = file.read_text()
    if whole.count(mutant.old) != 1:
        sys.exit(f"The mutant '{mutant.name}' does not fit {mutant.file} any more: write it anew.")
    sound = exit_code(mutant.test, copy) == 0
    file.write_text(whole.replace(mutant.old, mutant.new))
    found = exit_code(mutant.test, copy) == SOME_TEST_FAILED
    file.write_text(whole)
    verdict = "caught" if sound and found else "SURVIVED" if sound else "THE TEST FAILS WITHOUT IT"
    print(
        f"{mutant.name:<46} {mutant.test.removeprefix('tests/pipelines/'):<120} {verdict}",
        flush=True,
    )
    return sound and found


def exit_code(test: str, copy: Path) -> int:
    """Returns pytest's exit code: 0 where all passed, 1 where a test failed, others where none
    could run.
    """
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    return subprocess.run(command, cwd=copy, env=ENV, capture_output=True).returncode


if __name__ == "__main__":
    main()
