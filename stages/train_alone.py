"""train_alone@DATASET: each client's model of its own records alone, for all methods. Private.

It is `local`'s, and with many labels the second model of the recipe `replay`.
"""

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import shards
from pipelines.datasets.salting import add_salt_file
from pipelines.federation.core.task import of_clients
from pipelines.federation.home import alone
from pipelines.files import new_folder, write_text
from stages.cli import main

ABOUT = "Beside this folder lies one with the results of each method that the parameters list.\n"


def run(params: Params, dataset: str) -> None:
    """Trains each client's model and writes it.

    Args:
        params: The parameters.
        dataset: The data set's name.
    """
    settings = params.training(dataset, "fine_tune")
    client_shards = shards.read_all(dataset, list(params.clients), params.profiles[dataset])
    models = {}
    seconds = 0.0
    if settings.recipe == "replay":
        models, seconds = alone.trained(
            of_clients(params, dataset, {}, "local", None).build,
            client_shards,
            settings.replay,
            seeds.derive(params.seed, "fine_tune", dataset),
        )
    with new_folder(paths.alone(dataset)) as folder:
        alone.write(folder, models, seconds)
        add_salt_file(folder, dataset, "all-clients")
    for place in paths.about_baselines(dataset):
        # the report depends on these folders' parents, which DVC wants also without any method
        with new_folder(place) as folder:
            write_text(folder / "about.txt", ABOUT)
            add_salt_file(folder, dataset, "all-clients")
    if models:
        print(f"{dataset}: {len(models)} clients trained alone in {seconds:.1f} s")
    else:
        why = f"with fine_tune.recipe {settings.recipe!r} no method needs such a model"
        print(f"{dataset}: nothing is trained alone: {why}")


if __name__ == "__main__":
    main(run, "dataset")
