"""Shows what clients released, checks the ledgers, or plans what experiments would cost.

show: what every client released. verify: the chains. plan: what a grid of experiments would cost
in all. A total is taken at --delta, or at the smallest delta that the client's releases state,
which is the cap's own.
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

# The delta of params.yaml as it is shipped. It is used if no release states one.
USUAL_DELTA = 1e-5
NOTHING = "no ledger DATASET/CLIENT.jsonl, so nothing was released from there yet."


def main(arguments: list[str] | None = None) -> None:
    """Runs the command.

    It ends with one sentence and exit 1 where a ledger is damaged, an argument wrong, or a folder
    cannot be read.

    Args:
        arguments: The words after the command's name; None for those of this process.
    """
    try:
        options = parsed(__doc__, arguments)
        folder = options.folder or ledger_folder.chosen()
        named = options.folder is not None or bool(os.environ.get(ledger_folder.VARIABLE))
        paths = _ledgers(folder, named=named)
        if options.command == "plan":
            plan(paths, options)
            return
        if not paths:
            print(f"{folder} holds {NOTHING}")
        _each(paths, {"show": show, "verify": verify}[options.command], options.delta)
    except LedgerError as error:
        sys.exit(f"Error: {error}")
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        sys.exit(f"Error: {error.strerror or error}{place}.")
    except KeyboardInterrupt:
        sys.exit("Interrupted.")


def show(path: Path, delta: float | None) -> None:
    """Prints every release with its price, the total, and one per mechanism that made several."""
    ledger = _opened(path, delta)
    entries = ledger.entries()
    opened = [entry for entry in entries if entry["event"] == "open"]
    closed = {entry["fingerprint"]: entry for entry in entries if entry["event"] == "close"}
    print(
        f"{_name(path)}: total epsilon {ledger.total_in_words()} at delta {ledger.delta:g}"
        f"{_other_deltas(ledger)}, per record"
    )
    # 1. each release
    width = max((len(entry["mechanism"]) for entry in opened), default=0)
    for entry in opened:
        state = "made" if entry["fingerprint"] in closed else "OPEN: died, or still running"
        statement = closed.get(entry["fingerprint"], entry)["statement"]
        epsilon = statement.get("epsilon", math.nan)
        price = f"epsilon {epsilon:<8g} delta {statement.get('delta', math.nan):<8g}"
        print(f"  {entry['fingerprint'][:12]}  {entry['mechanism']:<{width}}  {price} {state}")
    # 2. each mechanism that made several
    costs = ledger.costs()
    for mechanism in dict.fromkeys(entry["mechanism"] for entry in opened):
        releases = [entry for entry in opened if entry["mechanism"] == mechanism]
        mechanism_costs = [costs[entry["fingerprint"]] for entry in releases]
        if len(mechanism_costs) > 1:
            total = accounting.total_epsilon(costs=mechanism_costs, delta=ledger.delta)
            words = wording.total(total, mechanism_costs)
            print(f"  {len(mechanism_costs)} of {mechanism} together: epsilon {words}")
    # 3. whom a release trusts, without whom its price does not hold
    for sentence, fingerprints in _trusted(opened).items():
        print(f"  {', '.join(fingerprints)}: {sentence}")
    # 4. what makes an infinite total infinite
    if math.isinf(ledger.total_epsilon()):
        mechanisms = {entry["fingerprint"]: entry["mechanism"] for entry in opened}
        named = []
        for fingerprint, cost in costs.items():
            mechanism = mechanisms.get(fingerprint, "never opened")
            named.append((f"{fingerprint[:12]} ({mechanism})", cost))
        print(f"  {wording.culprits(named, ledger.delta)}")


def _trusted(opened: list[dict]) -> dict[str, list[str]]:
    """Returns {sentence that says whom a release trusts: the first digits of those releases}."""
    trusted = {}
    for entry in opened:
        if "trust" in entry["statement"]:
            trusted.setdefault(entry["statement"]["trust"], []).append(entry["fingerprint"][:12])
    return trusted


def verify(path: Path, delta: float | None) -> None:
    """Checks the chain of one ledger and prints its length.

    Raises:
        LedgerError: The chain is damaged.
    """
    ledger = _opened(path, delta)
    print(f"{_name(path)}: {len(ledger.entries())} lines, the chain is whole")


def plan(paths: list[Path], options: argparse.Namespace) -> None:
    """Prints a grid's total alone, and on top of what each client has released.

    The second is at that client's delta.

    Args:
        paths: The ledgers.
        options: `epsilons`, `generators` and `repeat` of the grid, and `delta` or None.
    """
    ledgers = {_name(path): _opened(path, options.delta) for path in paths}
    deltas = [ledger.delta for ledger in ledgers.values()]
    delta = options.delta or min(deltas, default=USUAL_DELTA)
    costs = _grid(options, delta)
    alone = wording.total(accounting.total_epsilon(costs=costs, delta=delta), costs)
    count = len(options.epsilons) * options.generators * options.repeat
    print(f"{count} Gaussian releases: epsilon {alone} at delta {delta:g} together")
    for name, ledger in ledgers.items():
        before = ledger.total_in_words()
        after = ledger.total_in_words(_grid(options, ledger.delta))
        print(f"  {name}: {before} now, {after} after, at delta {ledger.delta:g}")


def _grid(options: argparse.Namespace, delta: float) -> list[dict]:
    """Returns what the planned releases cost.

    n releases at one epsilon compose to a single one of sqrt(n) times its mu.
    """
    factor = math.sqrt(options.generators * options.repeat)
    mus = [Budget(epsilon, delta).mu * factor for epsilon in options.epsilons]
    return [{"kind": "none"} if math.isinf(mu) else {"kind": "gaussian", "mu": mu} for mu in mus]


def _each(
    paths: list[Path], act: Callable[[Path, float | None], None], delta: float | None
) -> None:
    """Applies a command to all ledgers, whatever is wrong with one, and exits with 1 then."""
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
    """Returns the paths of all ledgers. A ledger that was deleted is known by its head.

    Raises:
        LedgerError: Somebody named a folder that is none.
    """
    if named and not folder.is_dir():
        raise LedgerError(
            f"The folder of ledgers must be an existing folder. Got {str(folder)!r} instead."
        )
    files = [*folder.glob("*/*.jsonl"), *folder.glob("*/*.head")]
    return sorted({path.with_suffix(".jsonl") for path in files})


def _opened(path: Path, delta: float | None) -> Ledger:
    """Returns the ledger, whose totals are at `delta` or the smallest that its releases state."""
    if not delta:
        delta = min(_stated_deltas(Ledger(path, delta=USUAL_DELTA)), default=USUAL_DELTA)
    return Ledger(path, delta=delta)


def _stated_deltas(ledger: Ledger) -> set[float]:
    """Returns every delta that the ledger's releases state."""
    statements = [entry["statement"] for entry in ledger.entries()]
    return {statement["delta"] for statement in statements if "delta" in statement}


def _other_deltas(ledger: Ledger) -> str:
    """Returns a phrase on the deltas that releases state beside the total's, if there are any."""
    others = sorted(_stated_deltas(ledger) - {ledger.delta})
    if not others:
        return ""
    return f" (its releases state {', '.join(f'{delta:g}' for delta in others)}, too)"


def _name(path: Path) -> str:
    """Returns DATASET/CLIENT of a ledger."""
    return f"{path.parent.name}/{path.stem}"


if __name__ == "__main__":
    # a reader that has seen enough, such as `head`, is no error
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
