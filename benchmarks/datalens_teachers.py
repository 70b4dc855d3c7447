"""Rehearses `datalens` without privacy, with few or many records for each teacher.

    python -m benchmarks.datalens_teachers --images ../shared/datasets     # one CPU-minute per row

The rule of `teachers: auto` rests on these rows and on those of `datalens_ablation`
(`teachers_rule` in settings/generators.yaml). A client has a budget and a public number n of
records. With r records for each teacher there are N = n / r teachers, and the noise over a
unanimous vote is sigma / N. Fewer records make a worse teacher and less noise.

Rehearsals are those of `datalens_ablation`: few teachers, r records each, and noise scaled to the
sigma / N of all. They validate on training images that no teacher holds, and read no test image.
The noise is seeded, so nothing here is a release. Stored rows are not measured again.
"""

import argparse
import io
from contextlib import redirect_stdout
from pathlib import Path

from benchmarks import common, datalens_ablation
from benchmarks.common import keep, kept, show
from pipelines import config
from pipelines.config.generators import Datalens
from pipelines.datasets.labelled_images import Images
from pipelines.synthesis.datalens import generator as datalens

NAME = "datalens_teachers"
HIDDEN = ("settings",)
# {(records of the client, its epsilon): the records of a teacher that are tried}
CLIENTS = {
    (12_000, 10.0): (10, 20, 30, 15),
    (60_000, 1.0): (10, 15, 20, 30),
    (12_000, 1.0): (5, 10),
}


def cells() -> list[dict]:
    """Returns what is rehearsed, but for the seed."""
    keys = []
    for (records, epsilon), numbers in CLIENTS.items():
        for each in numbers:
            keys.append({"records": records, "epsilon": epsilon, "records_per_teacher": each})
    return keys


def _add(params: config.Params, shipped: Datalens, key: dict, train: Images) -> None:
    """Rehearses a cell and stores it, unless it is stored under the same settings."""
    records = key["records"]
    teachers = records // key["records_per_teacher"]
    settings = shipped.model_copy(update={"teachers": teachers, "weak_plan": "warn"})
    used = {
        "version": datalens.VERSION,
        "images": datalens_ablation.IMAGES,
        "teachers_rehearsed": datalens_ablation.TEACHERS,
        "classifier": datalens_ablation.RECIPE,
        "generator": settings.model_dump(exclude={"teachers_rule"}),
    }
    if any(common.has(row, {**key, "settings": used}) for row in kept(NAME)):
        return
    # The generator's own lines are not shown.
    with redirect_stdout(io.StringIO()):
        run = datalens_ablation.measure(
            params,
            settings,
            key["epsilon"],
            key["seed"],
            train,
            records=records,
            dataset=key["dataset"],
        )
    print(*key.values(), {name: round(value, 4) for name, value in run.items()}, flush=True)
    rows = [*common.without(kept(NAME), key), {**key, **run, "settings": used}]
    keep(NAME, sorted(rows, key=_place), rehearsal="no privacy")


def _place(row: dict) -> tuple:
    """Returns the place of a row in the table."""
    names = ("dataset", "records", "epsilon", "records_per_teacher", "seed")
    return tuple(row[name] for name in names)


def main() -> None:
    """Rehearses the cells that are not stored yet, and prints all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--images", type=Path, default=Path("../shared/datasets"), help="MNIST/raw/*.gz lies in it"
    )
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    arguments = parser.parse_args()
    params = config.load()
    train, _ = common.read(params, arguments.dataset, arguments.images)
    shipped = params.generator(arguments.dataset, "datalens")
    for seed in arguments.seeds:
        for key in cells():
            _add(params, shipped, {"dataset": arguments.dataset, **key, "seed": seed}, train)
    show(kept(NAME), hidden=HIDDEN)


if __name__ == "__main__":
    main()
