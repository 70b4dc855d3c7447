"""show: what every client released. verify: the chains. plan: what a grid of experiments would cost in all.

A total is taken at --delta, or at the smallest delta that the client's releases state, which is the cap's own.
"""

import argparse
import math
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from pipelines.privacy import accounting, ledger_folder
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.ledger import Ledger, LedgerError, wording
from pipelines.privacy.ledger.arguments import parsed

USUAL_DELTA = 1e-5  # of params.yaml as it is shipped; asked for where no release states one
NOTHING = "no ledger DATASET/CLIENT.jsonl, so nothing was released from there yet."


def main(arguments: list[str] | None = None) -> None:
    """Ends with one sentence and exit 1 where a ledger is damaged, an argument wrong, or a folder cannot be read."""
    try:
        asked = parsed(__doc__, arguments)
        folder = asked.folder or ledger_folder.chosen()
        paths = _ledgers(
            folder, named=asked.folder is not None or bool(os.environ.get(ledger_folder.VARIABLE))
        )
        if asked.command == "plan":
            plan(paths, asked)
            return
        if not paths:
            print(f"{folder} holds {NOTHING}")
        _each(paths, {"show": show, "verify": verify}[asked.command], asked.delta)
    except LedgerError as error:
        sys.exit(f"Error: {error}")
    except OSError as error:
        sys.exit(
            f"Error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}."
        )
    except KeyboardInterrupt:
        sys.exit("Interrupted.")


def show(path: Path, delta: float | None) -> None:
    """Every release with its price, the total, and one of each mechanism that made several."""
    ledger = _opened(path, delta)
    costs, entries = ledger.costs(), ledger.entries()
    opened = [entry for entry in entries if entry["event"] == "open"]
    closed = {entry["fingerprint"]: entry for entry in entries if entry["event"] == "close"}
    print(
        f"{_name(path)}: total epsilon {ledger.total_in_words()} at delta {ledger.delta:g}{_others(ledger)}, per record"
    )
    width = max((len(entry["mechanism"]) for entry in opened), default=0)
    for entry in opened:
        state = "made" if entry["fingerprint"] in closed else "OPEN: died, or still running"
        stated = closed.get(entry["fingerprint"], entry)["statement"]
        price = f"epsilon {stated.get('epsilon', math.nan):<8g} delta {stated.get('delta', math.nan):<8g}"
        print(f"  {entry['fingerprint'][:12]}  {entry['mechanism']:<{width}}  {price} {state}")
    for mechanism in dict.fromkeys(entry["mechanism"] for entry in opened):
        own = [costs[entry["fingerprint"]] for entry in opened if entry["mechanism"] == mechanism]
        if len(own) > 1:
            total = accounting.total_epsilon(costs=own, delta=ledger.delta)
            print(f"  {len(own)} of {mechanism} together: epsilon {wording.total(total, own)}")
    if math.isinf(ledger.total_epsilon()):
        mechanisms = {entry["fingerprint"]: entry["mechanism"] for entry in opened}
        named = [
            (f"{name[:12]} ({mechanisms.get(name, 'never opened')})", cost)
            for name, cost in costs.items()
        ]
        print(f"  {wording.culprits(named, ledger.delta)}")


def verify(path: Path, delta: float | None) -> None:
    ledger = _opened(path, delta)
    print(f"{_name(path)}: {len(ledger.entries())} lines, the chain is whole")


def plan(paths: list[Path], asked: argparse.Namespace) -> None:
    """The grid's total alone, and on top of what each client has released, at that client's delta."""
    ledgers = {_name(path): _opened(path, asked.delta) for path in paths}
    delta = asked.delta or min([ledger.delta for ledger in ledgers.values()], default=USUAL_DELTA)
    costs = _grid(asked, delta)
    alone = wording.total(accounting.total_epsilon(costs=costs, delta=delta), costs)
    count = len(asked.epsilons) * asked.generators * asked.repeat
    print(f"{count} Gaussian releases: epsilon {alone} at delta {delta:g} together")
    for name, ledger in ledgers.items():
        after = ledger.total_in_words(_grid(asked, ledger.delta))
        print(f"  {name}: {ledger.total_in_words()} now, {after} after, at delta {ledger.delta:g}")


def _grid(asked: argparse.Namespace, delta: float) -> list[dict]:
    """Returns what the planned releases cost: n of them at one epsilon compose to one of sqrt(n) times its mu."""
    factor = math.sqrt(asked.generators * asked.repeat)
    mus = [Budget(epsilon, delta).mu * factor for epsilon in asked.epsilons]
    return [{"kind": "none"} if math.isinf(mu) else {"kind": "gaussian", "mu": mu} for mu in mus]


def _each(
    paths: list[Path], act: Callable[[Path, float | None], None], delta: float | None
) -> None:
    """All of them, whatever is wrong with one; exit 1 then."""
    damaged = False
    for path in paths:
        try:
            act(path, delta)
        except LedgerError as error:
            damaged = True
            print(f"Error: {error}", file=sys.stderr)
    if damaged:
        sys.exit(1)


def _ledgers(folder: Path, named: bool) -> list[Path]:
    """Their paths; a ledger that was deleted is known by its head.

    Raises:
        LedgerError: somebody named a folder that is none.
    """
    if named and not folder.is_dir():
        raise LedgerError(
            f"The folder of ledgers must be an existing folder. Got {str(folder)!r} instead."
        )
    found = [*folder.glob("*/*.jsonl"), *folder.glob("*/*.head")]
    return sorted({path.with_suffix(".jsonl") for path in found})


def _opened(path: Path, delta: float | None) -> Ledger:
    return Ledger(
        path, delta=delta or min(_stated(Ledger(path, delta=USUAL_DELTA)), default=USUAL_DELTA)
    )


def _stated(ledger: Ledger) -> set[float]:
    """Every delta that its releases state."""
    return {
        entry["statement"]["delta"] for entry in ledger.entries() if "delta" in entry["statement"]
    }


def _others(ledger: Ledger) -> str:
    others = sorted(_stated(ledger) - {ledger.delta})
    return (
        f" (its releases state {', '.join(f'{delta:g}' for delta in others)}, too)"
        if others
        else ""
    )


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


if __name__ == "__main__":
    signal.signal(
        signal.SIGPIPE, signal.SIG_DFL
    )  # a reader that has seen enough, such as `head`, is no error
    main()
