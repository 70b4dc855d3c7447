"""joint_release@DATASET: makes the releases that clients make together, under secure sums.

Each stays within the budget that its clients have. Where no generator of the parameters is a joint
one, there is nothing to do. Where federation.mode is 'remote', the clients have made them over the
network (`python -m pipelines.joint`), and the stage takes a client's from the store of its ledger.
"""

import shutil
from pathlib import Path

from pipelines import paths
from pipelines.config import Params
from pipelines.config.generators import JOINT
from pipelines.datasets.salting import add_salt_file
from pipelines.files import new_folder
from stages.cli import main


def run(params: Params, dataset: str) -> None:
    """Writes each client's copy of what it released with others, as GENERATOR/CLIENT.

    Args:
        params: The parameters.
        dataset: The data set's name.
    """
    names = ", ".join(JOINT)
    results = {}
    for generator in params.synthesis.generators:
        if generator in JOINT:
            results[generator] = _made(params, dataset, generator)
    with new_folder(paths.joint(dataset)) as folder:
        for generator, stores in results.items():
            for client, store in stores.items():
                shutil.copytree(store, folder / generator / client)
        add_salt_file(folder, dataset, "all-clients")
    if not results:
        print(f"{dataset}: nobody releases together (synthesis.generators has none of {names})")


def _made(params: Params, dataset: str, generator: str) -> dict[str, Path]:
    """Returns where the result of each client's group is stored."""
    # these imports take a second, which a run without a joint release need not wait for
    from pipelines.synthesis import joint_apart, joint_release

    if params.federation.is_remote:
        return joint_apart.stored(params, dataset, generator)
    return joint_release.made(params, dataset, generator)


if __name__ == "__main__":
    main(run, "dataset")
