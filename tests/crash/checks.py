"""Checks what must hold after every fault and a recovery, and after a run that nobody disturbs."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from pipelines.datasets.salting import SALT, SALT_BYTES
from pipelines.privacy.ledger import Ledger, LedgerError

TIMED = "cost.json"  # seconds stand here alone
REPORTS = "reports"  # shows them


class Undisturbed:
    """Holds the outputs of a run without faults. exact: whether its noise repeats, and with it the
    bytes of a disturbed run.
    """

    def __init__(self, path: Path, exact: bool):
        self.path = path
        self.exact = exact
        self.entries = {client: ledger.entries() for client, ledger in ledgers(path).items()}
        self.outputs = {name: files(path / name) for name in outputs(path)}
        self.costs = {
            entry["fingerprint"]: entry["cost"]
            for entries in self.entries.values()
            for entry in entries
        }

    def broken(self, path: Path) -> Iterator[str]:
        """Yields sentences on what does not hold in a recovered checkout."""
        yield from self._ledgers(path)
        for name, whole in self.outputs.items():
            if (path / name).exists():
                yield from self._output(path / name, whole)
        yield from self._statements(path)
        yield from _litter(path)

    def unlike(self, path: Path, names: list[str], clients: dict[str, list[str]]) -> Iterator[str]:
        """Yields sentences on how a run that went to its end differs in these outputs and releases."""
        yield from self.broken(path)
        for name in names:
            if not (path / name).exists():
                yield f"{name} is not there"
        for client, fingerprints in clients.items():
            entries = entries_of(path, client)
            events = sorted((entry["fingerprint"], entry["event"]) for entry in entries)
            wanted = sorted((each, event) for each in fingerprints for event in ("open", "close"))
            if events != wanted:
                yield f"the ledger of {client} has {len(events)} lines, and {len(wanted)} undisturbed"
        stores = {store.name for store in (path / "ledgers/own/releases").glob("[!.]*")}
        if not stores <= {
            store.name for store in (self.path / "ledgers/own/releases").glob("[!.]*")
        }:
            yield "the ledgers' store has a release that no undisturbed run makes"
        if [*(path / "ledgers/own/releases").glob(".*")]:
            yield "a closed release left what it needed to go on with"

    def _ledgers(self, path: Path) -> Iterator[str]:
        for client, ledger in ledgers(path).items():
            try:
                entries = ledger.entries()
            except LedgerError as error:
                yield f"ledger: {error}"
                continue
            events = [(entry["fingerprint"], entry["event"]) for entry in entries]
            if len(events) != len(set(events)):
                yield f"{client} has a release twice"
            opened = {fingerprint for fingerprint, event in events if event == "open"}
            if not {fingerprint for fingerprint, _ in events} <= opened:
                yield f"{client} has a release closed that was never open"
            planned = {entry["fingerprint"] for entry in self.entries[client]}
            costs = ledger.costs()
            if not opened <= planned or any(
                cost != self.costs[each] for each, cost in costs.items()
            ):
                yield f"{client} was charged for what the plan has not"  # its total is composed of these costs alone

    def _output(self, folder: Path, whole: dict[str, bytes]) -> Iterator[str]:
        found = files(folder)
        if found.keys() != whole.keys():
            yield f"{folder.name} has {sorted(found)}, and {sorted(whole)} undisturbed"
        elif self.exact and folder.name != REPORTS:
            for name, content in found.items():
                if plain(name, content) != plain(name, whole[name]):
                    yield f"{folder.name}/{name} has other bytes than undisturbed"

    def _statements(self, path: Path) -> Iterator[str]:
        """Yields sentences on every epsilon that an output states and the ledger does not."""
        made = {}
        for client, ledger in ledgers(path).items():
            with contextlib.suppress(LedgerError):  # told above
                made[client] = {
                    entry["fingerprint"]: entry["statement"] for entry in ledger.closed()
                }
        for file in path.glob("models/private/generators/own/*/*/release.json"):
            if json.loads(file.read_text())["fingerprint"] not in made.get(file.parts[-3], {}):
                yield f"{file.parts[-3]}/{file.parts[-2]} is of a release that its ledger has not as made"
        for file in path.glob("data/synthetic/own/*/*/card.json"):
            epsilon = json.loads(file.read_text())["privacy"]["epsilon"]
            if epsilon not in [
                statement["epsilon"] for statement in made.get(file.parts[-3], {}).values()
            ]:
                yield f"the card of {file.parts[-3]}/{file.parts[-2]} states an epsilon that its ledger has not"
        for file in path.glob("models/private/dp_baselines/own/*/*/results.json"):
            for client, statement in json.loads(file.read_text())["statements"].items():
                if statement not in made.get(client, {}).values():
                    yield f"{file.parts[-2]} states another privacy for {client} than the ledger"


def _litter(path: Path) -> Iterator[str]:
    folders = [
        path / name for name in ("data", "models", "reports", ".dvc/cache", ".scratch/partial")
    ]
    left = [file for folder in folders for file in folder.rglob("*.tmp")]
    left += [*(path / ".scratch/partial").glob("*")]
    if left:
        yield f"left behind: {', '.join(str(file.relative_to(path)) for file in left)}"


def ledgers(path: Path) -> dict[str, Ledger]:
    return {
        file.stem: Ledger(file, delta=1e-5)
        for file in sorted((path / "ledgers/own").glob("*.jsonl"))
    }


def entries_of(path: Path, client: str) -> list[dict]:
    """Returns the entries of a ledger; none if it is absent or broken, which another check reports."""
    with contextlib.suppress(LedgerError, KeyError):
        return ledgers(path)[client].entries()
    return []


def outputs(path: Path) -> list[str]:
    """Returns the folders that exist and are a stage's output."""
    private = (
        "generators/own/*/*",
        "quality/own/*/*",
        "costs/own/*",
        "personal/own/*",
        "baselines/own/*",
    )
    private += ("dp_baselines/own/*", "new_clients/own/*")
    patterns = ["data/private/own/*", "data/synthetic/own/*/*", "models/initial/own/*", REPORTS]
    patterns += [f"models/private/{pattern}" for pattern in private]
    found = [
        folder for pattern in patterns for folder in sorted(path.glob(pattern)) if folder.is_dir()
    ]
    return [str(folder.relative_to(path)) for folder in found]


def plain(name: str, content: bytes) -> bytes:
    """Returns what of a file follows from the parameters, the records and the noise."""
    if Path(name).name == SALT:  # as long as all else in its folder makes it, seconds included
        return content[:SALT_BYTES]
    return b"" if Path(name).name == TIMED else content


def files(folder: Path) -> dict[str, bytes]:
    found = [
        file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != ".gitignore"
    ]
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}
