"""train_generator@DATASET-CLIENT-GENERATOR: one release of one client's shard, within that client's budget."""

from pipelines import paths, seeds
from pipelines.config import Params
from pipelines.datasets import shards
from pipelines.files import new_folder
from pipelines.privacy import noise
from pipelines.privacy.gaussian import Budget
from pipelines.synthesis import registry, release
from stages.cli import main


def run(params: Params, dataset: str, client: str, generator: str) -> None:
    module = registry.load(generator)
    settings = params.generator(dataset, generator)
    space = release.public_space(params.profiles[dataset])
    plan = module.plan(settings, Budget(*params.budget(client)), space)
    release.announce(plan, f"{dataset}/{client}/{generator}")
    names = ("train_generator", dataset, client, generator)
    source = noise.source(params.privacy.noise, seeds.derive(params.seed, "test noise", *names))
    train = shards.read(dataset, client, "train")
    state = module.fit(train, plan, source, seeds.derive(params.seed, *names))
    with new_folder(paths.generator(dataset, client, generator)) as folder:
        release.save(folder, state, plan, source)


if __name__ == "__main__":
    main(run, "dataset", "client", "generator")
