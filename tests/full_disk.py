"""Fills a small file system except for some pages, and enters releases twice, of short and of long lines.

python tests/full_disk.py FOLDER     # a tmpfs of 64 KiB; prints a list of results for each case
"""

import itertools
import json
import sys
from pathlib import Path

from ledgers import DELTA, check_sound, release

from pipelines.privacy.ledger import Ledger

PAGE = 4096
# A short line fits where the head does not. Of a line longer than a page a part may fit.
LENGTHS = (0, 6000)


def fill(ballast: Path, pages_free: int) -> None:
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(PAGE))
        except OSError:
            file.truncate(max(0, file.tell() // PAGE - pages_free) * PAGE)


def entered(ledger: Ledger, seed: int, length: int) -> str:
    try:
        return ledger.open(release(seed=seed, long="x" * length))
    except OSError as error:
        return error.strerror


def tried(folder: Path, pages_free: int, length: int) -> list[str]:
    """Returns what two attempts on the full disk came to. Then there is room again, and all must be
    sound.
    """
    ledger = Ledger(folder / f"own/c{pages_free}.jsonl", delta=DELTA)
    ballast = folder / "ballast"
    ledger.open(release())
    ledger.close(release().fingerprint)
    fill(ballast, pages_free)
    results = []
    for seed in (1, 2):
        results.append(entered(ledger, seed, length))
        results.append(f"{ledger.path.read_bytes().count(10)} lines")
    acknowledged = ledger.entries()
    ballast.unlink()
    check_sound(ledger.path, acknowledged)
    for file in ledger.path.parent.iterdir():
        file.unlink()
    return results


if __name__ == "__main__":
    cases = itertools.product(range(8), LENGTHS)
    print(json.dumps([tried(Path(sys.argv[1]), pages, length) for pages, length in cases]))
