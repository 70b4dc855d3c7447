"""The paper's experiments, Tables II to V and Figures 2 to 4, and two of our own, `roads` and `newcomers`: each by one
command.

    python -m experiments table2 --datasets mnist --seeds 0 --images ../archives
    make table2 ARGS="--datasets mnist --seeds 0 --generators dp_moments"

Each run is a `dvc exp run` in the workspace, one after the other: a day or more for a table of 28x28 images on two
cores. A run's figures are kept in experiments/results when it is done, and only what is missing, or was measured under
other parameters, runs again; after a change of code, remove its file there. Then NAME.csv, NAME.md and NAME.png are
written from all runs kept under today's parameters. Figure 3 is the picture of Table V. params.yaml must be committed,
and is put back. Every run spends: the clients' ledgers enter its releases.

What is kept are accuracies on the clients' private test parts, each client's and means over them: an experimenter's
view, in a folder that Git tracks. For public benchmark data sets that tells nobody anything. Data that is really
private is refused unless --publish-private says that it is meant.
"""

import argparse
import signal

from tqdm import tqdm

from experiments import catalogue, parameters, runner, store
from experiments.plans import PRIVATE, STORES, Asked
from pipelines import config
from pipelines.config.dp import DP_BASELINES
from pipelines.errors import UserError, told_in_a_sentence

INTERRUPTED = (
    "Interrupted. Runs that were done are kept, and DVC keeps the stages of this one that were."
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=catalogue.EXPERIMENTS)
    parser.add_argument("--datasets", nargs="+", default=["mnist", "fashion_mnist"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument(
        "--generators",
        nargs="+",
        default=list(PRIVATE),
        choices=PRIVATE,
        help="of table2, 4, 5 and figure2, 4",
    )
    parser.add_argument("--images", help="folder of raw files; params.yaml's own when not given")
    parser.add_argument(
        "--publish-private", action="store_true", help="also data sets that are no public benchmark"
    )
    given = parser.parse_args()
    with told_in_a_sentence(interrupted=INTERRUPTED):
        params = config.load()
        _check(params, given)
        generators = tuple(name for name in PRIVATE if name in given.generators)
        asked = Asked(
            tuple(given.datasets),
            tuple(given.seeds),
            tuple(params.clients),
            given.images,
            generators,
        )
        runner.check_committed()
        measure(catalogue.EXPERIMENTS[given.name].store, asked, params)
        publish(given.name, params)


def measure(name: str, asked: Asked, params: config.Params) -> None:
    """Runs and keeps what of the plan is not kept under its settings."""
    from experiments import collect  # torch and its metrics: seconds, that a refusal need not take

    kept = store.kept(name)
    planned = [(run, parameters.settings(params, run)) for run in STORES[name](asked)]
    bar = tqdm([pair for pair in planned if not store.found(kept, *pair)], desc=name, mininterval=1)
    for run, settings in bar:
        with runner.restored():
            runner.reproduce(
                f"{name}-{run.name}-{settings['parameters']}", run, bar.set_postfix_str
            )
            figures = collect.figures(parameters.resolved(params, run.overrides), run)
        store.keep(name, run, settings, figures)


def publish(name: str, params: config.Params) -> None:
    """Writes the table, page and picture from all runs kept under today's parameters."""
    origin = catalogue.EXPERIMENTS[name].store
    kept = store.kept(origin)
    of = {field: tuple(dict.fromkeys(row[field] for row in kept)) for field in ("dataset", "seed")}
    known = [dataset for dataset in of["dataset"] if dataset in params.profiles]
    plan = STORES[origin](Asked(tuple(known), of["seed"], tuple(params.clients)))
    rows = [
        row for run in plan if (row := store.found(kept, run, parameters.settings(params, run)))
    ]
    if len(rows) < len(kept):
        print(f"{len(kept) - len(rows)} runs kept under other parameters are left out.")
    catalogue.write(name, sorted(rows, key=lambda row: (row["dataset"], row["seed"])))
    print(f"{store.RESULTS}/{name}.md, .csv and .png: {len(rows)} runs")


def _check(params: config.Params, given: argparse.Namespace) -> None:
    for dataset in given.datasets:
        if dataset not in params.profiles:
            raise UserError(
                f"The '--datasets' argument must be of {list(params.profiles)}. Got {dataset!r} instead."
            )
        if not params.profiles[dataset].is_public and not given.publish_private:
            raise UserError(
                f"{dataset} is no public benchmark: its clients' scores would stand in {store.RESULTS}, which Git "
                "tracks. --publish-private says that this is meant."
            )
        if given.name == "roads":
            for algorithm in DP_BASELINES:
                if why := params.left_out(dataset, algorithm):
                    raise UserError(f"{dataset}: {algorithm} takes part in roads. {why}")
    if min(given.seeds) < 0:
        raise UserError(f"The '--seeds' argument must be ints from 0. Got {given.seeds} instead.")


if __name__ == "__main__":
    for ending in (
        signal.SIGTERM,
        signal.SIGINT,
    ):  # SIGINT is ignored in what a script has put in the background
        signal.signal(ending, signal.default_int_handler)  # params.yaml is put back then, too
    main()
