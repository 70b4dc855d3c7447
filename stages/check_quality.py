"""check_quality@DATASET-CLIENT-GENERATOR: scores one export against its client's private records.

Its output is private.
"""

from pathlib import Path

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.config.data import Profile
from pipelines.config.generators import WITH_CLASSIFIER
from pipelines.datasets import labelled_images, shards
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.salting import add_salt_file
from pipelines.errors import UserError
from pipelines.evaluation import image_comparison, image_quality
from pipelines.evaluation.scoring import scores
from pipelines.files import new_folder, write_json
from pipelines.synthesis import released_classifier
from pipelines.training import classifier
from pipelines.training.tensors import device
from stages.cli import main


def run(params: Params, dataset: str, client: str, generator: str) -> None:
    """Scores an export and writes quality.json.

    Args:
        params: The parameters.
        dataset: The data set's name.
        client: The client's name.
        generator: The generator's name.

    Raises:
        UserError: The export misses a threshold, and `quality.on_failure` is `fail`.
    """
    profile = params.profiles[dataset]
    recipe = params.training(dataset, "single")
    export = paths.synthetic(dataset, client, generator)
    fake = labelled_images.load(export / "images.npz", profile)
    train, validation, test = (shards.read(dataset, client, part, profile) for part in shards.PARTS)
    global_test = labelled_images.load(paths.prepared(dataset) / "test.npz", profile)
    seed = seeds.derive(params.seed, "check_quality", dataset, client, generator)
    network = image_comparison.extractor(params.quality, train, profile.encoder)
    held_out = labelled_images.concatenate([validation, test])
    results = image_comparison.compare(network, fake, train, held_out, params.quality, seed)
    model = classifier.on_synthetic(fake, profile, recipe, seed, device(params.device))
    results |= {f"tstr_{name}": value for name, value in scores(model, test).items()}
    if generator in WITH_CLASSIFIER:
        results |= _scores_of_released(export, profile, test)
    results |= {
        "tstr_accuracy_global": scores(model, global_test)["accuracy"],
        "records": len(train),
        "extractor": params.quality.extractor,
        "extractor_sha256": image_comparison.digest(network),
    }
    warnings = image_quality.complaints(results, params.quality)
    name = f"{dataset}/{client}/{generator}"
    for warning in warnings:
        print(f"{name}: {warning}")
    if warnings and params.quality.on_failure == "fail":
        raise UserError(
            f"{name} misses its quality thresholds: {'; '.join(warnings)}. "
            "(quality.on_failure: fail)"
        )
    with new_folder(paths.quality(dataset, client, generator)) as folder:
        write_json(folder / "quality.json", {**results, "warnings": warnings})
        add_salt_file(folder, dataset, client)
    line = f"FID {results['fid']:.3g} (floor {results['fid_floor']:.3g})"
    line += f", TSTR {results['tstr_accuracy']:.3f}"
    if generator in WITH_CLASSIFIER:
        line += f", released classifier {results['released_accuracy']:.3f}"
    print(f"{name}: {line}")


def _scores_of_released(export: Path, profile: Profile, test: Images) -> dict[str, float]:
    """Returns `released_NAME` of every metric of the classifier that an export holds.

    Args:
        export: The folder of the export.
        profile: The data set's profile.
        test: The client's private test part.
    """
    released = released_classifier.read(export, profile)
    return {f"released_{name}": value for name, value in scores(released.model, test).items()}


if __name__ == "__main__":
    main(run, "dataset", "client", "generator")
