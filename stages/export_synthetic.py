"""export_synthetic@DATASET-CLIENT-GENERATOR: samples the generator and writes the export."""

from pipelines import paths, releases, seeds
from pipelines.config import Params
from pipelines.files import new_folder
from pipelines.synthesis import export, hub, release
from pipelines.synthesis.export import card
from stages.cli import main


def run(params: Params, dataset: str, client: str, generator: str) -> None:
    """Writes what the client hands out: images, their card, and a classifier if one was released.

    Args:
        params: The parameters.
        dataset: The data set's name.
        client: The client's name.
        generator: The generator's name.
    """
    source = paths.generator(dataset, client, generator)
    state, released = release.load(source)
    fingerprint = released["fingerprint"]
    privacy = releases.statement(params, dataset, client, fingerprint)
    name = releases.public_name(params, dataset, client, fingerprint)
    seed = seeds.derive(params.seed, "export_synthetic", dataset, client, generator)
    profile = params.profiles[dataset]
    data = release.sample(source, generator, state, profile.images, seed)
    classifier = release.classifier(source, generator, state, privacy)
    description = card(
        dataset=dataset,
        client=client,
        generator=generator,
        release={
            "name": name,
            "weak": released["weak"],
            "privacy": privacy,
            "together": released.get("together"),
            "sealed": released.get("sealed"),
        },
        data=data,
        profile=profile,
        classifier=classifier,
    )
    place = paths.synthetic(dataset, client, generator)
    with new_folder(place) as folder:
        export.write(folder, data, description, classifier)
    files = ["images.npz", "grid.png", "card.md", *([paths.CLASSIFIER] if classifier else [])]
    print(
        f"{dataset}/{client}/{generator}: {len(data)} images in {place}: {', '.join(files)}, "
        f"and {hub.FOLDER}/ for other tools"
    )


if __name__ == "__main__":
    main(run, "dataset", "client", "generator")
