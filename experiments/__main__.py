"""Measures the paper's Tables II to V and Figures 2 to 4, and two studies of this project.

The two studies are `roads` and `newcomers`. Each experiment is one command:

    python -m experiments table2 --datasets mnist --seeds 0 --images ../archives
    make table2 ARGS="--datasets mnist --seeds 0 --generators dp_moments"

    python -m experiments compare workspace NAME    (scores of your own runs, side by side)

Each run of an experiment is one `dvc exp run` in the workspace, one after the other. In most
experiments it measures one method, and DVC makes once what all of them need. The stages of a run
are made side by side, as by `make repro`. A table of 28x28 images takes many hours. When a run is
done, its figures are stored in experiments/results. Only runs that are missing there, or that were
measured under other parameters, run again. After a change of code, remove the experiment's file
there.

Then NAME.csv, NAME.md and NAME.png are written from all runs stored under today's parameters.
Figure 3 is the picture of Table V. The parameter files must be committed; they are restored after
each run.
Every run spends privacy budget: the clients' ledgers enter its releases.

The stored figures are accuracies on the clients' private test parts, by client and as means. They
are an experimenter's view, in a folder that Git tracks. For public benchmark data sets they reveal
nothing. Private data is refused, unless --publish-private says that it is meant.
"""

import argparse
import signal
import sys

from tqdm import tqdm

from experiments import catalogue, compare, parameters, runner, store
from experiments.plans import MEASURED, PRIVATE, STORES, Request
from experiments.summaries import by
from pipelines import config
from pipelines.config.dp import DP_BASELINES
from pipelines.errors import UserError, told_in_a_sentence

INTERRUPTED = (
    "Interrupted. Runs that were done are kept, and DVC keeps the stages of this one that were."
)


def main() -> None:
    """Reads the command line, measures what is missing, and writes the pages.

    Raises:
        SystemExit: The command line, the parameters or a run are refused; it says why in a
            sentence.
    """
    if sys.argv[1:2] == ["compare"]:
        # a reader that has seen enough, such as `head`, is no error; a run must not end so
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        compare.main(sys.argv[2:])
        return
    given = _parser().parse_args()
    with told_in_a_sentence(interrupted=INTERRUPTED):
        params = config.load()
        _check(params, given)
        request = Request(
            datasets=tuple(given.datasets),
            seeds=tuple(given.seeds),
            clients=tuple(params.clients),
            images=given.images,
            generators=tuple(name for name in PRIVATE if name in given.generators),
            methods=tuple(given.methods),
        )
        _check_plan(given, request)
        runner.check_committed()
        measure(catalogue.EXPERIMENTS[given.name].store, request, params)
        publish(given.name, params)


def measure(name: str, request: Request, params: config.Params) -> None:
    """Makes the runs of a plan that are not stored under their settings, and stores them.

    Args:
        name: Name of the store and of its plan, a key of `plans.STORES`.
        request: The command line's data sets, seeds, clients and generators.
        params: The parameters of params.yaml, without overrides.

    Raises:
        UserError: A run failed, or a file cannot be read.
    """
    # This import takes seconds for torch, which a refusal need not wait for.
    from experiments import collect

    stored = store.kept(name)
    missing = []
    for run in STORES[name](request):
        settings = parameters.settings(params, run)
        if not store.found(stored, run, settings):
            missing.append((run, settings))
    bar = tqdm(missing, desc=name, mininterval=1)
    for run, settings in bar:
        experiment = f"{name}-{run.name}-{settings['parameters']}"
        with runner.restored():
            runner.reproduce(experiment, run, bar.set_postfix_str)
            figures = collect.figures(parameters.resolved(params, run.overrides), run)
        store.keep(name, run, settings, figures)


def publish(name: str, params: config.Params) -> None:
    """Writes the table, page and picture from all runs stored under today's parameters."""
    origin = catalogue.EXPERIMENTS[name].store
    stored = store.kept(origin)
    datasets = tuple(name for name in by(stored, "dataset") if name in params.profiles)
    request = Request(datasets, tuple(by(stored, "seed")), tuple(params.clients))
    rows = []
    for run in STORES[origin](request):
        row = store.found(stored, run, parameters.settings(params, run))
        if row:
            rows.append(row)
    if len(rows) < len(stored):
        print(f"{len(stored) - len(rows)} runs kept under other parameters are left out.")
    catalogue.write(name, sorted(rows, key=lambda row: (row["dataset"], row["seed"])))
    print(f"{store.RESULTS}/{name}.md, .csv and .png: {len(rows)} runs")


def _parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
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
    parser.add_argument(
        "--methods",
        nargs="+",
        default=[],
        choices=MEASURED,
        help="of the experiment's; all when not given",
    )
    parser.add_argument("--images", help="folder of raw files; params.yaml's own when not given")
    parser.add_argument(
        "--publish-private", action="store_true", help="also data sets that are no public benchmark"
    )
    return parser


def _check(params: config.Params, given: argparse.Namespace) -> None:
    """Refuses data sets and seeds that cannot be measured or may not be published."""
    for dataset in given.datasets:
        if dataset not in params.profiles:
            raise UserError(
                f"The '--datasets' argument must be of {list(params.profiles)}. "
                f"Got {dataset!r} instead."
            )
        if not params.profiles[dataset].is_public and not given.publish_private:
            raise UserError(
                f"{dataset} is no public benchmark: its clients' scores would stand in "
                f"{store.RESULTS}, which Git tracks. --publish-private says that this is meant."
            )
        if given.name == "roads":
            for algorithm in DP_BASELINES:
                is_asked = not given.methods or algorithm in given.methods
                if is_asked and (why := params.left_out(dataset, algorithm)):
                    raise UserError(f"{dataset}: {algorithm} takes part in roads. {why}")
    if min(given.seeds) < 0:
        raise UserError(f"The '--seeds' argument must be ints from 0. Got {given.seeds} instead.")


def _check_plan(given: argparse.Namespace, request: Request) -> None:
    """Refuses methods of which the experiment's plan has no run."""
    if not any(STORES[catalogue.EXPERIMENTS[given.name].store](request)):
        raise UserError(
            f"The '--methods' argument must name methods of {given.name}. "
            f"Got {', '.join(given.methods)} instead."
        )


if __name__ == "__main__":
    # A script's background command ignores SIGINT. With these handlers the parameter files are
    # restored after either signal.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
