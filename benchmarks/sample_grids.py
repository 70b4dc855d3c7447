"""Draws grids of synthetic images for docs/synthesis.md, and prints what making them took.

    python -m benchmarks.sample_grids --images ../shared/datasets              # minutes on one core
    python -m benchmarks.sample_grids --generators dp_teacher --datasets mnist --epsilons 10 --folder /tmp/grids

The client is that of benchmarks.synthesis_utility under the same seed. The generator and the images
are drawn anew, so no run repeats the noise of another. A grid has a row of ten images per class,
which are never chosen. Grids have 16 grey levels and are small. Do not publish a grid of `gan`. It
may repeat records, which are private to their owner and not this project's to license.
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
from pipelines.datasets.labelled_images import Images
from pipelines.synthesis import base, export

# Number of images: enough for ten of every class that the noise leaves.
COUNT = 400
# Number of grey levels.
LEVELS = 16


def main() -> None:
    """Draws a grid for each data set, generator and epsilon."""
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
        train, _ = sources.read(
            dataset,
            name=profile.source,
            classes=profile.classes,
            shape=profile.shape,
            root=arguments.images,
        )
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


def _draw(params: config.Params, key: dict, seed: int, shard: Images, path: Path) -> None:
    """Makes a release from the shard, draws its images and prints what that took."""
    start = cpu_seconds()
    # The generators' own lines are not shown.
    with redirect_stdout(io.StringIO()):
        state = synthesis_utility.fitted(params, key, seed, shard)
    seconds = cpu_seconds() - start
    images = base.load(key["generator"]).sample(state, COUNT, seeds.derive(seed, "sample"))
    sheet = export.grid(images, params.profiles[key["dataset"]].classes).convert("L")
    sheet.quantize(LEVELS, dither=Image.Dither.NONE).save(path, optimize=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{path}: {seconds:.0f} CPU-seconds; the process so far {peak:.2f} GiB at most", flush=True
    )


if __name__ == "__main__":
    main()
