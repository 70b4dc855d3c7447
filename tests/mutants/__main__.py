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
# what Python says of code that makes no sense
BROKEN = ("AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "SyntaxError")


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
    """Returns whether the named test passes on the whole code, and fails on the mutant.

    A mutant that cannot run at all shows nothing of its test, and is not caught.
    """
    file = copy / mutant.file
    whole = file.read_text()
    if whole.count(mutant.old) != 1:
        sys.exit(f"The mutant '{mutant.name}' does not fit {mutant.file} any more: write it anew.")
    sound, _ = tried(mutant.test, copy)
    file.write_text(whole.replace(mutant.old, mutant.new))
    code, reason = tried(mutant.test, copy)
    file.write_text(whole)
    verdict = "caught"
    if sound != 0:
        verdict = "THE TEST FAILS WITHOUT IT"
    elif code != SOME_TEST_FAILED:
        verdict = "SURVIVED"
    elif reason.startswith(BROKEN):
        verdict = "CANNOT RUN"
    test = mutant.test.removeprefix("tests/pipelines/")
    print(f"{mutant.name:<46} {test:<120} {verdict}: {reason}", flush=True)
    return verdict == "caught"


def tried(test: str, copy: Path) -> tuple[int, str]:
    """Returns pytest's exit code and the first line of what failed, empty where nothing did.

    The code is 0 where all passed, 1 where a test failed, and others where none could run.
    """
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    run = subprocess.run(command, cwd=copy, env=ENV, capture_output=True, text=True)
    for line in run.stdout.splitlines():
        if line.startswith("E  "):
            return run.returncode, line[1:].strip()
    return run.returncode, ""


if __name__ == "__main__":
    main()
