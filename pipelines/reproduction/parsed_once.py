"""Has DVC parse each text of YAML once in a run.

DVC reads dvc.lock again for each file of stages that it looks for, and a parameter file for each
stage that reads it: some two hundred times, most of what a run with nothing to do takes. The same
text has the same content, of which each caller gets a copy of its own.
"""

import contextlib
import pickle
from collections.abc import Iterator


@contextlib.contextmanager
def parsed_once() -> Iterator[None]:
    """Keeps what DVC parsed, until the block ends. Errors are not kept."""
    from dvc.utils import strictyaml
    from dvc.utils.serialize import _yaml

    parse = _yaml.parse_yaml
    contents = {}

    def once(text: str, path: str, typ: str = "safe"):
        # round-trip parsing keeps comments and is for what is written back
        if typ != "safe":
            return parse(text, path, typ=typ)
        if text not in contents:
            contents[text] = pickle.dumps(parse(text, path, typ=typ))
        return pickle.loads(contents[text])

    places = [(module, module.parse_yaml) for module in (_yaml, strictyaml)]
    for module, _ in places:
        module.parse_yaml = once
    try:
        yield
    finally:
        for module, before in places:
            module.parse_yaml = before
