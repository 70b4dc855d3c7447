"""Lets each client adapt a model of `train_noisy` on its private records.

DVC does not run it. The clients are those of the parameters: one that lists itself alone needs no
other's records. The output is private.
"""

from pipelines import paths
from pipelines.config import Params
from pipelines.federation.home import handed_out
from pipelines.federation.noisy_run import NoisyRun
from stages.cli import main


def run(params: Params, dataset: str, algorithm: str) -> None:
    """Fine-tunes at every client and writes the results.

    Args:
        params: The parameters.
        dataset: The data set's name.
        algorithm: The noisy algorithm that made the model.
    """
    noisy = NoisyRun(params, dataset, algorithm)
    name = paths.of_noisy_method(algorithm)
    line = handed_out.adapt(params, dataset, name, algorithm, noisy.build, noisy.network)
    print(line)


if __name__ == "__main__":
    main(run, "dataset", "algorithm", block="dp_baselines")
