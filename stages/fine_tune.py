"""fine_tune@DATASET-GENERATOR: each client adapts a shared initial model on its private records.

The model is PPPFL's, or another method's by `--method`. The clients are those of the parameters: one
that lists itself alone needs no other's records. The output is private.
"""

from functools import partial

from pipelines import methods, paths
from pipelines.config import Params
from pipelines.federation.home import handed_out
from pipelines.training import classifier
from pipelines.training.tensors import device
from stages.cli import main


def run(params: Params, dataset: str, generator: str, method: str = "pppfl") -> None:
    """Fine-tunes at every client and writes the results.

    Args:
        params: The parameters.
        dataset: The data set's name.
        generator: The generator's name.
        method: The method that made the model.
    """
    profile = params.profiles[dataset]
    name = paths.of_method(generator, method)
    build = partial(classifier.new, profile, 0, device(params.device))
    reported = f"{method}/{generator}"
    print(handed_out.adapt(params, dataset, name, reported, build, profile.classifier))


if __name__ == "__main__":
    main(run, "dataset", "generator", methods=methods.of_one_model)
