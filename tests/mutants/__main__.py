"""Plants them.

make mutants         # mutant, test, caught or not; exit 1 when one survives or a test fails without it
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from project import ENV, ROOT

from mutants import MUTANTS
from mutants.mutant import Mutant


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "fedlens"
        names = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True, capture_output=True
        )
        for name in names.stdout.splitlines():
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
        survivors = [mutant.name for mutant in MUTANTS if not caught(mutant, copy)]
    print(f"{len(MUTANTS) - len(survivors)} of {len(MUTANTS)} caught")
    sys.exit(bool(survivors))


def caught(mutant: Mutant, copy: Path) -> bool:
    """Whether the named test passes on the whole code and fails on the mutant."""
    file = copy / mutant.file
    whole = file.read_text()
    if whole.count(mutant.old) != 1:
        sys.exit(f"The mutant '{mutant.name}' does not fit {mutant.file} any more: write it anew.")
    sound = passes(mutant.test, copy)
    file.write_text(whole.replace(mutant.old, mutant.new))
    found = not passes(mutant.test, copy)
    file.write_text(whole)
    verdict = "caught" if sound and found else "SURVIVED" if sound else "THE TEST FAILS WITHOUT IT"
    print(f"{mutant.name:<46} {mutant.test.removeprefix('tests/pipelines/'):<120} {verdict}", flush=True)
    return sound and found


def passes(test: str, copy: Path) -> bool:
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    return subprocess.run(command, cwd=copy, env=ENV, capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
