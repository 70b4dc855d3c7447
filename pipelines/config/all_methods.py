"""Lists all methods beside PPPFL, and newcomers, in params.yaml, with its comments as they are."""

import io
from pathlib import Path

from ruamel.yaml import YAML

from pipelines.config.dp import DP_BASELINES
from pipelines.config.generators import JOINT
from pipelines.config.training import BASELINES

# {block of params.yaml: all that its `algorithms` may name}
METHODS = {"baselines": BASELINES, "dp_baselines": DP_BASELINES}
# clients that are left out in their turn, where none is named
NEWCOMERS = 3


def listed(text: str) -> str:
    """Returns the text of params.yaml with all methods listed, and some newcomers.

    Args:
        text: The text of params.yaml, which is valid.

    >>> text = '''baselines:
    ...   algorithms:  # what runs
    ...   - local
    ... dp_baselines:
    ...   algorithms: []
    ... new_clients: {held_out: [c0]}
    ... '''
    >>> listed(text).splitlines()[:4]
    ['baselines:', '  algorithms:  # what runs', '  - local', '  - random_init']
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    content = yaml.load(text)
    for block, names in METHODS.items():
        algorithms = content[block]["algorithms"]
        algorithms.fa.set_block_style()
        for name in names:
            if name not in algorithms:
                algorithms.append(name)
    held_out = content["new_clients"]["held_out"]
    # whose records are in a joint release is no newcomer
    generators = content.get("synthesis", {}).get("generators", ())
    if not held_out and not set(JOINT) & set(generators):
        held_out.fa.set_block_style()
        held_out.extend(list(content["clients"])[:NEWCOMERS])
    stream = io.StringIO()
    yaml.dump(content, stream)
    return stream.getvalue()


def write(path: Path) -> list[str]:
    """Lists all methods and some newcomers in a file, and returns the methods that were not there.

    Args:
        path: params.yaml.
    """
    before = path.read_text()
    after = listed(before)
    path.write_text(after)
    known = YAML(typ="safe").load(before)
    added = []
    for block, names in METHODS.items():
        added += [name for name in names if name not in known[block]["algorithms"]]
    return added
