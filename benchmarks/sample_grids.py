"""Grids of synthetic images for docs/synthesis.md, and what making them took.

    python -m benchmarks.sample_grids --images ../shared/datasets              # minutes on one core
    python -m benchmarks.sample_grids --generators dp_teacher --datasets mnist --epsilons 10 --folder /tmp/grids

The client is that of benchmarks.synthesis_utility under the same seed. The generator and the images are drawn anew, so
no run repeats the noise of another. A row per class, ten images each, never chosen. Grids hold 16 grey levels and are
small. Keep no grid of `gan`: it may repeat records, which are private to their owner and not this project's to license.
"""

import argparse
import io
import resource
from contextlib import redirect_stdout
from pathlib import Path

from PIL import Image

from benchmarks import synthesis_utility
from benchmarks.common import cpu_seconds
from pipelines import config, seeds
from pipelines.config.generators import GENERATORS
from pipelines.datasets import sources
from pipelines.synthesis import base, export

COUNT = 400  # images: enough for ten of every class that the noise leaves
LEVELS = 16


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--images", type=Path, default=Path("../shared/datasets"), help="MNIST/raw/*.gz lies in it"
    )
    parser.add_argument(
        "--generators", nargs="+", default=["dp_moments", "dp_merf"], choices=GENERATORS
    )
    parser.add_argument("--datasets", nargs="+", default=["mnist", "fashion_mnist"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--records", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("docs/images"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    params = config.load()
    for dataset in arguments.datasets:
        profile = params.profiles[dataset]
        public = {"name": profile.source, "classes": profile.classes, "shape": profile.shape}
        train, _ = sources.read(dataset, **public, root=arguments.images)
        for generator in arguments.generators:
            for epsilon in arguments.epsilons:
                key = {
                    "generator": generator,
                    "dataset": dataset,
                    "records": arguments.records,
                    "epsilon": epsilon,
                }
                shard = synthesis_utility.client(key, arguments.seed, train)
                path = arguments.folder / f"{dataset}-{generator}-epsilon{epsilon:g}.png"
                _draw(params, key, arguments.seed, shard, path)


def _draw(params: config.Params, key: dict, seed: int, shard, path: Path) -> None:
    start = cpu_seconds()
    with redirect_stdout(io.StringIO()):  # the generators' own lines
        state = synthesis_utility.fitted(params, key, seed, shard)
    seconds = cpu_seconds() - start
    made = base.load(key["generator"]).sample(state, COUNT, seeds.derive(seed, "sample"))
    sheet = export.grid(made, params.profiles[key["dataset"]].classes).convert("L")
    sheet.quantize(LEVELS, dither=Image.Dither.NONE).save(path, optimize=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{path}: {seconds:.0f} CPU-seconds; the process so far {peak:.2f} GiB at most", flush=True
    )


if __name__ == "__main__":
    main()
