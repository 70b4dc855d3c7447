"""Runs what is out of date: `dvc repro` with progress, and with several stages at a time.

    python -m pipelines.reproduction [--jobs N] [TARGET ...]

It checks the parameters and the folder of raw files, mends what a crash left torn, and runs DVC
(`run`). Two things differ from `dvc repro`: stages that do not need each other run side by side
(`side_by_side`), and they start at once (`warm`).
"""

import argparse
from pathlib import Path

from pipelines import config, releases
from pipelines.datasets import raw_files
from pipelines.errors import told_in_a_sentence
from pipelines.plan import spent
from pipelines.recover import recovery
from pipelines.reproduction.run import reproduce
from pipelines.reproduction.side_by_side import usual_jobs


def main() -> None:
    """Reads the command line, checks what can be checked, and runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", help="names of stages; all where there is none")
    parser.add_argument(
        "--jobs",
        type=int,
        help="how many stages may run at a time; as many as cores and memory allow, 4 at most",
    )
    arguments = parser.parse_args()
    if arguments.jobs is not None and arguments.jobs < 1:
        parser.error(f"argument --jobs: must be 1 or more. Got {arguments.jobs} instead.")
    with told_in_a_sentence():
        params = config.load()
        raw_files.check(Path(params.prepare.root))
        mended = recovery.recover()
        if mended:
            print(f"Recovered: {'; '.join(mended)}. {recovery.proof()}")
        ran = reproduce(arguments.targets, arguments.jobs or usual_jobs())
        if not ran:
            print("Nothing has changed: no stage had to run.")
        with releases.as_user_error():
            print("\n".join(spent.lines(params)))
        print(
            "To send what may leave, use 'make push': it asks the guard first, and a bare "
            "'dvc push' asks nobody."
        )


if __name__ == "__main__":
    main()
