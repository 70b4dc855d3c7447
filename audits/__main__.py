"""Attacks every private mechanism of this project and holds what it proves against what is claimed.

    python -m audits [--long] [--out FOLDER]

writes audit.json and audit.png, and exits with 1 on a finding. No client's data is read. An audit
passed is a lower bound, not a proof.
"""

import argparse
import sys
import time
from pathlib import Path

from audits import plot, suite
from pipelines import paths
from pipelines.files import write_json
from pipelines.reporting import canvas


def main() -> None:
    """Parses the command line, runs the audits and writes what they found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--long", action="store_true", help="minutes instead of seconds, and tighter bounds"
    )
    parser.add_argument("--out", type=Path, default=paths.REPORTS)
    arguments = parser.parse_args()
    start = time.monotonic()
    report = build(suite.LONG if arguments.long else suite.SHORT)
    report["form"] = "long" if arguments.long else "short"
    report["seconds"] = round(time.monotonic() - start, 1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_json(arguments.out / "audit.json", report)
    canvas.save(plot.draw(report), arguments.out / "audit.png")
    sys.exit("\n".join(findings(report)) or None)


def build(effort: suite.Effort) -> dict:
    """Runs all audits and prints a line per audit.

    Returns:
        {"mechanisms" | "attacks" | "controls": {name: figures}, "note"}.
    """
    note = "epsilon_lower is a lower bound found by an attack, not a proof of anything above it"
    report: dict = {"note": note}
    for group in (suite.mechanisms, suite.attacks, suite.controls):
        verdicts = group(effort)
        for name, verdict in verdicts.items():
            print(
                f"{name:<40} epsilon >= {verdict.epsilon_lower:6.2f}, "
                f"claimed {verdict.epsilon_claimed:6.2f}",
                flush=True,
            )
        report[group.__name__] = {name: verdict.as_dict() for name, verdict in verdicts.items()}
    return report


def findings(report: dict) -> list[str]:
    """Returns a sentence per audit that did not end as it must: ours pass, controls fail.

    >>> passed = {"passed": True}
    >>> findings({"mechanisms": {"a": passed}, "attacks": {}, "controls": {"b": passed}})
    ['b was not caught: the audit is blind.']
    """
    sentences = []
    for name, figures in (report["mechanisms"] | report["attacks"]).items():
        if not figures["passed"]:
            sentences.append(f"{name} leaks more than it claims.")
    for name, figures in report["controls"].items():
        if figures["passed"]:
            sentences.append(f"{name} was not caught: the audit is blind.")
    return sentences


if __name__ == "__main__":
    main()
