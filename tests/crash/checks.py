"""Checks what must hold after every fault and a recovery, and after a run that nobody disturbs."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from pipelines.datasets.salting import SALT, SALT_BYTES
from pipelines.privacy.ledger import Ledger, LedgerError

# Only this file holds seconds, and the reports show them.
TIMED = "cost.json"
REPORTS = "reports"
RELEASES = "ledgers/own/releases"


class Undisturbed:
    """Holds the outputs of a run without faults. exact: whether its noise repeats, and with it the
    bytes of a disturbed run.
    """

    def __init__(self, path: Path, exact: bool):
        self.path = path
        self.exact = exact
        self.outputs = {name: files(path / name) for name in outputs(path)}
        self.entries = {}
        self.costs = {}
        for client, ledger in ledgers(path).items():
            self.entries[client] = ledger.entries()
            for entry in self.entries[client]:
                self.costs[entry["fingerprint"]] = entry["cost"]

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
            events = sorted(events_of(entries))
            wanted = []
            for fingerprint in fingerprints:
                wanted += [(fingerprint, "close"), (fingerprint, "open")]
            if events != sorted(wanted):
                yield f"the ledger of {client} has {len(events)} lines, and {len(wanted)} undisturbed"
        if not stores(path) <= stores(self.path):
            yield "the ledgers' store has a release that no undisturbed run makes"
        if [*(path / RELEASES).glob(".*")]:
            yield "a closed release left what it needed to go on with"

    def _ledgers(self, path: Path) -> Iterator[str]:
        for client, ledger in ledgers(path).items():
            try:
                entries = ledger.entries()
            except LedgerError as error:
                yield f"ledger: {error}"
                continue
            events = events_of(entries)
            if len(events) != len(set(events)):
                yield f"{client} has a release twice"
            opened = {fingerprint for fingerprint, event in events if event == "open"}
            if not dict(events).keys() <= opened:
                yield f"{client} has a release closed that was never open"
            planned = dict(events_of(self.entries[client])).keys()
            # The client's total is composed of these costs alone.
            if not opened <= planned or not ledger.costs().items() <= self.costs.items():
                yield f"{client} was charged for what the plan has not"

    def _output(self, folder: Path, whole: dict[str, bytes]) -> Iterator[str]:
        contents = files(folder)
        if contents.keys() != whole.keys():
            yield f"{folder.name} has {sorted(contents)}, and {sorted(whole)} undisturbed"
        elif self.exact and folder.name != REPORTS:
            for name, content in contents.items():
                if plain(name, content) != plain(name, whole[name]):
                    yield f"{folder.name}/{name} has other bytes than undisturbed"

    def _statements(self, path: Path) -> Iterator[str]:
        """Yields sentences on every epsilon that an output states and the ledger does not."""
        made = {}
        for client, ledger in ledgers(path).items():
            # `_ledgers` reports a broken ledger.
            with contextlib.suppress(LedgerError):
                made[client] = {}
                for entry in ledger.closed():
                    made[client][entry["fingerprint"]] = entry["statement"]
        for file in path.glob("models/private/generators/own/*/*/release.json"):
            client, generator = file.parts[-3:-1]
            if json.loads(file.read_text())["fingerprint"] not in made.get(client, {}):
                yield f"{client}/{generator} is of a release that its ledger has not as made"
        for file in path.glob("data/synthetic/own/*/*/card.json"):
            client, generator = file.parts[-3:-1]
            stated = json.loads(file.read_text())["privacy"]["epsilon"]
            epsilons = [statement["epsilon"] for statement in made.get(client, {}).values()]
            if stated not in epsilons:
                yield (
                    f"the card of {client}/{generator} states an epsilon that its ledger has not"
                )
        for file in path.glob("models/private/dp_baselines/own/*/*/results.json"):
            for client, statement in json.loads(file.read_text())["statements"].items():
                if statement not in made.get(client, {}).values():
                    yield f"{file.parts[-2]} states another privacy for {client} than the ledger"


def _litter(path: Path) -> Iterator[str]:
    left = []
    for name in ("data", "models", "reports", ".dvc/cache", ".scratch/partial"):
        left += (path / name).rglob("*.tmp")
    left += (path / ".scratch/partial").glob("*")
    if left:
        yield f"left behind: {', '.join(str(file.relative_to(path)) for file in left)}"


def ledgers(path: Path) -> dict[str, Ledger]:
    """Returns {client: its ledger} of a checkout."""
    by_client = {}
    for file in sorted((path / "ledgers/own").glob("*.jsonl")):
        by_client[file.stem] = Ledger(file, delta=1e-5)
    return by_client


def events_of(entries: list[dict]) -> list[tuple[str, str]]:
    """Returns (fingerprint, event) of each entry."""
    return [(entry["fingerprint"], entry["event"]) for entry in entries]


def stores(path: Path) -> set[str]:
    """Returns the names of the releases in the ledgers' store."""
    return {store.name for store in (path / RELEASES).glob("[!.]*")}


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
    names = []
    for pattern in patterns:
        for folder in filter(Path.is_dir, sorted(path.glob(pattern))):
            names.append(str(folder.relative_to(path)))
    return names


def plain(name: str, content: bytes) -> bytes:
    """Returns what of a file follows from the parameters, the records and the noise."""
    # The length of a salt file follows from all else in its folder, seconds included.
    if Path(name).name == SALT:
        return content[:SALT_BYTES]
    return b"" if Path(name).name == TIMED else content


def files(folder: Path) -> dict[str, bytes]:
    """Returns the content of each file of a folder by its path there."""
    contents = {}
    for file in filter(Path.is_file, sorted(folder.rglob("*"))):
        if file.name != ".gitignore":
            contents[str(file.relative_to(folder))] = file.read_bytes()
    return contents
