"""Measures what a joint release is worth, against what each client releases alone.

    python -m benchmarks.joint_release                                       # digits, CPU-minutes
    python -m benchmarks.joint_release --mixed                               # two groups of epsilons
    python -m benchmarks.joint_release --datasets mnist fashion_mnist --clients 50 --records 200 \
        --epsilons 0.5 1 3 10 --images ../archives                           # many hours
    python -m benchmarks.joint_release --kinds head --datasets mnist fashion_mnist --clients 10 \
        --epsilons 2 --images ../archives                                    # the head
    python -m benchmarks.joint_release --kinds datalens own_datalens --datasets mnist --epsilons 1 10 \
        --images ../archives                                                 # on a GPU: minutes

A classifier learns from synthetic images alone, and is scored on the global test images. Clients
have label skew (Dirichlet 0.5), and `--records` each in the mean. `own`: each client releases its
own two sums, and its own images. `joint`: the two sums over all clients are released under secure
sums, with noise in shares, as the stage `joint_release` does it. One generator then makes all images.
All rows of a data set have equally many images. The clients and the server of a secure sum run in
this process.

`datalens` and `own_datalens` are the same for votes: `joint_datalens` and `datalens`.
`head`: the classifier of `joint_head` itself, which has the whole budget and no images beside it.
`benchmarks.dp_head` measures `dpsgd_head`, where each client adds noise of its own.

`--longer` trains the classifier with four times the steps that `pooled` has, at half its rate: what
the same images teach who has more time.

With `--mixed` half of the clients ask for the least epsilon, the others for the largest. `joint`
plans the noise of all for the stricter one. `groups` makes a joint release of each group, as the
stage does.

Runs of a row that are stored under today's settings are not made again.
"""

import argparse
from pathlib import Path

import numpy as np
from torch import nn

from benchmarks import common, joint_sums
from pipelines import config, seeds
from pipelines.config.data import Partition
from pipelines.config.training import Pooled
from pipelines.config.values import Block
from pipelines.datasets import partitions
from pipelines.datasets.labelled_images import Images, concatenate
from pipelines.evaluation.scoring import scores
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import base, joint_head, release
from pipelines.synthesis.joint_plan import Group
from pipelines.training import classifier

NAME = "joint_release"
# of the label skew
ALPHA = 0.5
# the profile's number of images is that of one of so many clients
USUAL = 5
HIDDEN = ("runs", "epsilons", "settings")
# by kind of release
GENERATORS = {
    "own": "dp_moments",
    "joint": "joint_moments",
    "groups": "joint_moments",
    "head": "joint_head",
    "own_datalens": "datalens",
    "datalens": "joint_datalens",
}
# of `--longer`: the schedule's steps and its rate are multiplied by these
STEPS_FACTOR = 4
RATE_FACTOR = 0.5
# kinds of release that each client makes alone
ALONE = ("own", "own_datalens")


def dealt(
    images: Images, count: int, records: int | None, rng: np.random.Generator
) -> list[Images]:
    """Returns the parts of clients, with label skew. Each has a record at least.

    Args:
        images: The images.
        count: How many clients there are.
        records: How many each has in the mean; None: all images are dealt.
        rng: Draws which image goes where.
    """
    chosen = images[rng.permutation(len(images))[: count * records if records else None]]
    settings = Partition.model_construct(
        clients=[f"c{number}" for number in range(count)],
        scheme="dirichlet",
        alpha=ALPHA,
        min_records=1,
    )
    return [chosen[rows] for rows in partitions.deal(chosen.labels, settings, rng).values()]


class Case:
    """Describes one row: whose records are released, at which price, and together with whom.

    Args:
        params: The parameters of params.yaml.
        dataset: The data set's name.
        epsilons: The budget of each client.
        kind: A key of GENERATORS.
        trusting: True for t = K / 2, False for t = 0; of an own release it means nothing.
        records: Of each client in the mean; None: all that there are.
        is_longer: The classifier is trained as `--longer` says.
    """

    def __init__(
        self,
        params: config.Params,
        dataset: str,
        epsilons: list[float],
        kind: str,
        trusting: bool,
        records: int | None,
        is_longer: bool = False,
    ):
        self.params = params
        self.dataset = dataset
        self.epsilons = epsilons
        self.kind = kind
        self.trusting = trusting
        self.records = records
        self.is_longer = is_longer
        self.profile = params.profiles[dataset]
        self.images = USUAL * self.profile.images // len(epsilons)

    @property
    def key(self) -> dict:
        """Returns what tells this row from others, and today's settings."""
        settings = self._settings.model_dump(exclude={"colluding"})
        if not settings.get("low_signal"):
            # rows from before it existed
            settings.pop("low_signal", None)
        used = [
            self.profile.model_dump(include={"shape", "classes", "classifier", "augmentation"}),
            settings,
            self._training.model_dump(),
            [self.params.privacy.delta, self.images, self.records, ALPHA],
        ]
        return {
            "dataset": self.dataset,
            "clients": len(self.epsilons),
            "epsilon": min(self.epsilons),
            "release": self.kind,
            "colluding": None if self.kind in ALONE else self._colluding(len(self.epsilons)),
            "epsilons": sorted(set(self.epsilons)),
            "training": "longer" if self.is_longer else "shipped",
            "settings": common.digest(used),
        }

    @property
    def _training(self) -> Pooled:
        """Returns the settings of the classifier's training."""
        shipped = self.params.training(self.dataset, "pooled")
        if not self.is_longer:
            return shipped
        longer = {
            "steps": shipped.steps * STEPS_FACTOR,
            "learning_rate": shipped.learning_rate * RATE_FACTOR,
        }
        return shipped.model_copy(update=longer)

    @property
    def _settings(self) -> Block:
        """Returns the settings of what is released."""
        settings = self.params.generator(self.dataset, GENERATORS[self.kind])
        if self.kind == "head":
            return settings.model_copy(update={"head_share": 1.0})
        # a weak plan is measured, too
        weak = {"weak_plan": "warn"} if hasattr(settings, "weak_plan") else {}
        return settings.model_copy(update=weak)

    def trained(self, parts: list[Images], seed: int) -> nn.Module:
        """Returns a classifier that learned from the release, or was released.

        Args:
            parts: The records of each client.
            seed: Of the samples and of the training.
        """
        if self.kind == "head":
            return joint_head.classifier(self._state(parts, self._budget(min(self.epsilons)), seed))
        released = self.released(parts, seed)
        return classifier.on_synthetic(released, self.profile, self._training, seed)

    def released(self, parts: list[Images], seed: int) -> Images:
        """Returns the images that all clients released.

        Args:
            parts: The records of each client.
            seed: Of the samples.
        """
        groups: dict[float, list[Images]] = {}
        for epsilon, part in zip(self.epsilons, parts):
            groups.setdefault(epsilon, []).append(part)
        if self.kind == "joint":
            groups = {min(groups): parts}
        make = self._own if self.kind in ALONE else self._joint
        sets = []
        for epsilon, members in groups.items():
            sets.append(make(members, self._budget(epsilon), seed))
        return concatenate(sets)

    def _budget(self, epsilon: float) -> Budget:
        return Budget(epsilon, self.params.privacy.delta)

    def _own(self, parts: list[Images], budget: Budget, seed: int) -> Images:
        module = base.load(GENERATORS[self.kind])
        space = self._space(sum(map(len, parts)) // len(parts))
        plan = module.plan(self._settings, budget, space)
        where = base.Where(self.params.device)
        sets = []
        for number, records in enumerate(parts):
            state = module.fit(records, plan, OsEntropy(), seed, where)
            draw = seeds.derive(seed, "sample", f"{budget.epsilon} {number}")
            sets.append(module.sample(state, self.images, draw))
        return concatenate(sets)

    def _space(self, records: int) -> base.Space:
        """Returns what is public about the images, of about so many records."""
        return release.public_space(self.profile, records)

    def _joint(self, parts: list[Images], budget: Budget, seed: int) -> Images:
        draw = seeds.derive(seed, "sample", f"{budget.epsilon} joint")
        module = base.load(GENERATORS[self.kind])
        return module.sample(self._state(parts, budget, seed), self.images * len(parts), draw)

    def _state(self, parts: list[Images], budget: Budget, seed: int) -> dict[str, np.ndarray]:
        """Returns the state of what the clients release together."""
        return joint_sums.fitted(
            GENERATORS[self.kind],
            self._settings,
            budget,
            self._space(sum(map(len, parts))),
            Group(len(parts), self._colluding(len(parts))),
            parts,
            seed,
            base.Where(self.params.device),
        )

    def _colluding(self, clients: int) -> int:
        return clients // 2 if self.trusting else 0


def measured(case: Case, seed_list: list[int], root: Path, done: list[float]) -> dict:
    """Returns a row: the accuracy of one kind of release.

    Args:
        case: What is released.
        seed_list: The seeds, of one draw each.
        root: The folder of raw files.
        done: What the runs of the first seeds gave, which are not made again.
    """
    params = case.params
    runs = list(done)
    for seed in seed_list[len(done) :]:
        images, test = common.read(params, case.dataset, root)
        rng = np.random.default_rng(seeds.derive(seed, NAME))
        if test is None:
            test, images = common.split(images, params.prepare.test_fraction, rng)
        parts = dealt(images, len(case.epsilons), case.records, rng)
        runs.append(scores(case.trained(parts, seed), test)["accuracy"])
    return {
        **case.key,
        "records": sum(map(len, parts)) // len(parts),
        "accuracy": float(np.mean(runs)),
        "seeds": len(runs),
        "runs": runs,
    }


def cases(params: config.Params, arguments: argparse.Namespace) -> list[Case]:
    """Returns the rows that the command line asks for."""
    clients = arguments.clients
    budgets = [[epsilon] * clients for epsilon in arguments.epsilons]
    kinds = []
    for kind in arguments.kinds:
        kinds += [(kind, False)] if kind in ALONE else [(kind, False), (kind, True)]
    if arguments.mixed:
        half = clients // 2
        ends = min(arguments.epsilons), max(arguments.epsilons)
        budgets = [[ends[0]] * half + [ends[1]] * (clients - half)]
        kinds = [("own", False), ("joint", True), ("groups", True)]
    listed = []
    for dataset in arguments.datasets:
        for epsilons in budgets:
            for kind, trusting in kinds:
                asked = arguments.records, arguments.longer
                listed.append(Case(params, dataset, epsilons, kind, trusting, *asked))
    return listed


def main() -> None:
    """Measures the rows that are not stored, one after the other, and stores each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["digits"])
    parser.add_argument("--clients", type=int)
    parser.add_argument("--records", type=int, help="of each client in the mean; all by default")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument(
        "--kinds", nargs="+", default=["own", "joint"], choices=sorted(set(GENERATORS) - {"groups"})
    )
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--longer", action="store_true", help="train the classifier longer")
    parser.add_argument("--images", type=Path)
    arguments = parser.parse_args()
    if arguments.seeds != list(range(len(arguments.seeds))):
        # a row counts its runs and does not name their seeds
        parser.error("--seeds must be 0, 1, 2 and so on")
    arguments.clients = arguments.clients or (6 if arguments.mixed else USUAL)
    params = config.load()
    root = arguments.images or Path(params.prepare.root)
    for case in cases(params, arguments):
        stored = [row["runs"] for row in common.kept(NAME) if common.has(row, case.key)]
        done = stored[0] if stored else []
        if len(done) >= len(arguments.seeds):
            continue
        row = measured(case, arguments.seeds, root, done)
        common.show([row], hidden=HIDDEN)
        same = {name: row[name] for name in (*case.key, "records") if name != "settings"}
        rows = [*common.without(common.kept(NAME), same), row]
        common.keep(NAME, rows, delta=params.privacy.delta)
    common.show(common.kept(NAME), hidden=HIDDEN)


if __name__ == "__main__":
    main()
