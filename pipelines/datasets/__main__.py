"""Adds a data set of one's own: looks at the images, and writes the profile.

    python -m pipelines.datasets add skin              # in `prepare.root`
    python -m pipelines.datasets add skin /data/skin

The images are skin/CLASS/*, skin/SITE/CLASS/* or skin.npz, as raw/README.md says.

It lists the classes with their counts, the sites, and all files that cannot be read, and proposes
shape, clients and partition. It writes profiles/NAME.yaml, and says which lines of params.yaml are
left to change. No image is written, moved or sent.
"""

import argparse
from pathlib import Path

from pipelines import config, paths
from pipelines.config import Params
from pipelines.config.places import profile_file
from pipelines.datasets import inspection, proposal, raw_files
from pipelines.datasets.inspection import Findings
from pipelines.datasets.proposal import Proposal
from pipelines.datasets.salting import PADDING, SALT
from pipelines.errors import UserError, printable, told_in_a_sentence
from pipelines.files import write_text

# of sites and of classes, in a listing
MOST_LINES = 30
# No count decides this: what a client releases must not follow from how many records it has.
OF_DATALENS = (
    "# Without `datalens`, which takes longest. It serves clients of ten thousand records and more at",
    "# epsilon 10. If it is public that yours have so many, leave it in.",
)


def add(params: Params, name: str, path: Path | None, *, by_site: bool | None) -> None:
    """Looks at a data set, prints what was found, and writes its profile.

    Args:
        params: The parameters.
        name: The data set's name.
        path: Its folder or file; None: in `prepare.root`.
        by_site: Whether the class folders lie in a folder per site; None: as the folders look.

    Raises:
        UserError: The name is taken, the path does not fit it, or the images cannot be used.
    """
    profile = Path(profile_file(name))
    if profile.exists():
        raise UserError(f"{profile} is there already. Remove it, or choose another name.")
    root = _root(params, name, path)
    raw_files.check(root)
    findings = inspection.look(root, name, by_site=by_site)
    print("\n".join(_findings(root, name, findings)))
    if not len(findings.labels) or findings.classes < 2:
        raise UserError(
            f"{name} needs readable images of two classes or more. "
            f"Got {len(findings.labels)} images of {findings.classes} instead."
        )
    proposed = proposal.propose(findings, params.partition, params.prepare.test_fraction)
    write_text(profile, proposal.as_yaml(name, proposed.profile))
    try:
        config.load()
    except UserError:
        # no command would work any more
        profile.unlink()
        raise
    print("\n".join(_next_steps(params, name, root, findings, proposed)))


def _root(params: Params, name: str, path: Path | None) -> Path:
    """Returns the folder of raw files in which the data set lies."""
    if not name.isidentifier():
        raise UserError(
            "The name must be letters, digits and underscores, no digit first. "
            f"Got {name!r} instead."
        )
    if path is None:
        return Path(params.prepare.root)
    if path.name not in (name, f"{name}.npz"):
        kind = f"{name}.npz" if path.suffix == ".npz" else name
        raise UserError(
            f"The last part of {printable(path)} must be the data set's name, {kind}. "
            f"Rename it, or add it as {path.stem!r}."
        )
    if not path.exists():
        raise UserError(f"{printable(path)} is missing.")
    if Path().resolve().is_relative_to(path.parent.resolve()):
        raise UserError(
            f"{printable(path)} lies in a folder that holds this project, too, and DVC reads all of "
            f"`prepare.root`. Move it into {paths.RAW}, or into a folder of its own."
        )
    return path.parent


def _findings(root: Path, name: str, findings: Findings) -> list[str]:
    lines = [
        f"{printable(root / name)}: {len(findings.labels)} images in {findings.classes} classes"
    ]
    counts = [int((findings.labels == label).sum()) for label in range(findings.classes)]
    rows = []
    for label, count in enumerate(counts):
        rows.append(
            (f"label {label}", printable(findings.names[label]) if findings.names else "", count)
        )
    lines += _table(rows)
    if findings.sites is not None:
        lines.append(f"{len(findings.by_site)} sites own them:")
        lines += _table(
            [("site", printable(site), count) for site, count in findings.by_site.items()]
        )
    if len(findings.sides):
        channels = "grey" if findings.channels == 1 else f"{findings.channels} channels"
        lines.append(f"sizes: {_sizes(findings)}; {channels}")
    if findings.official_test:
        lines.append(f"the file's own test part: {findings.official_test} images")
    if findings.broken:
        lines.append(f"{len(findings.broken)} cannot be read:")
        lines += [f"  {sentence}" for sentence in findings.broken]
    for reason, files in sorted(findings.left_out.items()):
        lines.append(f"left out {len(files)}, each {reason}: {raw_files.some(sorted(files))}")
    return lines


def _table(rows: list[tuple[str, str, int]]) -> list[str]:
    width = max(len(name) for _, name, _ in rows)
    lines = [f"  {kind}  {name.ljust(width)}  {count:>7}" for kind, name, count in rows]
    if len(lines) > MOST_LINES:
        return [*lines[:MOST_LINES], f"  and {len(lines) - MOST_LINES} more"]
    return lines


def _sizes(findings: Findings) -> str:
    heights, widths = findings.sides.T
    if len({tuple(pair) for pair in findings.sides.tolist()}) == 1:
        return f"all {heights[0]}x{widths[0]}"
    return f"{heights.min()} to {heights.max()} high, {widths.min()} to {widths.max()} wide"


def _next_steps(
    params: Params, name: str, root: Path, findings: Findings, proposed: Proposal
) -> list[str]:
    profile = proposed.profile
    shape = "x".join(map(str, profile["shape"]))
    lines = [
        "",
        f"Wrote {profile_file(name)}: images of {shape}, {profile['classes']} classes, the network "
        f"{profile['classifier']}. State the licence there.",
        "Change these lines of params.yaml:",
        "",
        "datasets:",
        f"- {name}",
    ]
    prepare = []
    if root.resolve() != Path(params.prepare.root).resolve():
        prepare.append(f"  root: {root}")
        others = {entry.name for entry in root.iterdir()} - {name, f"{name}.npz", SALT, PADDING}
        if others:
            beside = f"(beside {name}: {len(others)} more)"
            prepare.append(f"  # DVC reads all of that folder {beside}.")
            prepare.append(f"  # Where that is much, move {name} into a folder of its own.")
    if findings.broken:
        prepare.append(f"  on_unreadable: skip     # leaves out the {len(findings.broken)} above")
    if prepare:
        lines += ["prepare:", *prepare]
    lines += _partition_lines(params, proposed.partition)
    generators = [name for name in params.synthesis.generators if name != "datalens"]
    if proposed.partition and generators and generators != params.synthesis.generators:
        lines += ["synthesis:", "  generators:"]
        lines += [f"  - {generator}" for generator in generators]
        lines += OF_DATALENS
    return [*lines, "", "Then run `python -m pipelines.config`, and `make repro`."]


def _partition_lines(params: Params, partition: dict | None) -> list[str]:
    """Returns the lines of `partition`, and of what names its clients."""
    if partition is None:
        return [
            "",
            "No number of clients from 2 on leaves each of them enough records for training and "
            "tests. More images are needed.",
        ]
    clients = partition["clients"]
    lines = ["partition:", f"  scheme: {partition['scheme']}", "  clients:"]
    lines += [f"  - {client}" for client in clients]
    if partition["sites"]:
        lines.append("  sites:")
        for client, sites in partition["sites"].items():
            lines.append(f"    {client}: {sites}")
    if "min_records" in partition:
        lines.append(f"  min_records: {partition['min_records']}")
    lines.append("  small: null")
    missing = [client for client in clients if client not in params.clients]
    unused = [client for client in params.clients if client not in clients]
    if missing:
        lines.append("clients:                  # beside those that stand there")
        lines += [f"  {client}: {{epsilon: 10.0}}" for client in missing]
    if unused:
        lines.append(
            f"# and take {', '.join(unused)} out of `clients` and of `new_clients.held_out`"
        )
    return lines


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add", help="look at images of one's own, and write their profile")
    adding.add_argument("name", help="of the data set")
    adding.add_argument("path", nargs="?", type=Path, help="folder or .npz; else in prepare.root")
    folders = adding.add_mutually_exclusive_group()
    folders.add_argument(
        "--by-site", action="store_true", default=None, help="class folders lie in site folders"
    )
    folders.add_argument("--by-class", dest="by_site", action="store_false")
    arguments = parser.parse_args()
    with told_in_a_sentence():
        add(config.load(), arguments.name, arguments.path, by_site=arguments.by_site)


if __name__ == "__main__":
    main()
