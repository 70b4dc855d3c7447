"""Has DVC write dvc.lock in pieces: after a stage, the text of that stage alone is made anew.

DVC reads and writes the whole file for each stage, in a way that keeps comments. With sixty stages
this takes longer than most of them. A piece is the text of one stage. All pieces but the one that
changed are taken from the file as they are, and what was written last is not parsed again.
"""

import contextlib
import copy
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

LOCK = "dvc.lock"
# A stage begins with its name, two spaces in.
NAME = re.compile(r"^  (?=\S)", re.MULTILINE)


@contextlib.contextmanager
def lock_in_pieces(order: Sequence[str] = ()) -> Iterator[None]:
    """Changes how DVC writes dvc.lock, until the block ends. The bytes are those that DVC writes.

    Args:
        order: The stages of a plan. A new one comes before the first that is later in the plan,
            whichever ended first. DVC puts it at the end, as it does with any other.
    """
    from dvc import dvcfile

    whole = dvcfile.modify_yaml
    # {the text written last: its content}
    written = {}

    @contextlib.contextmanager
    def modify(path: str, fs: object = None) -> Iterator[dict]:
        file = Path(path)
        text = file.read_text("utf-8") if file.name == LOCK and file.exists() else ""
        before = written[text] if text in written else _content(text, path)
        pieces = _pieces(text, before)
        if pieces is None:
            with whole(path, fs=fs) as data:
                yield data
            return
        data = copy.deepcopy(before)
        yield data
        data["stages"] = _ordered(data["stages"], before["stages"], list(order))
        text = _joined(data, before, pieces)
        file.write_text(text, "utf-8")
        written.clear()
        # DVC may still change the objects that it stored
        written[text] = copy.deepcopy(data)

    dvcfile.modify_yaml = modify
    try:
        yield
    finally:
        dvcfile.modify_yaml = whole


def _content(text: str, path: str) -> dict:
    from dvc.utils.serialize import _yaml

    return _yaml.parse_yaml(text, path)


def _pieces(text: str, content: dict) -> dict[str, str] | None:
    """Returns {stage: its text}, or None of a file that is not as DVC writes it.

    Args:
        text: The file's.
        content: What the text says.
    """
    if set(content) != {"schema", "stages"} or "#" in text:
        return None
    starts = [match.start() for match in NAME.finditer(text)]
    texts = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    pieces = dict(zip(content["stages"], texts))
    plain = all(piece.startswith(f"  {name}:\n") for name, piece in pieces.items())
    return pieces if plain and len(texts) == len(content["stages"]) else None


def _ordered(stages: dict, before: dict, order: list[str]) -> dict:
    """Returns the stages with each new one before the first that is later in the order."""
    names = list(before)
    for name in [name for name in stages if name not in before]:
        later = set(order[order.index(name) + 1 :]) if name in order else set()
        place = next((at for at, other in enumerate(names) if other in later), len(names))
        names.insert(place, name)
    return {name: stages[name] for name in names if name in stages}


def _joined(data: dict, before: dict, pieces: dict[str, str]) -> str:
    """Returns the text of the changed content.

    Args:
        data: The content now.
        before: The content of the file as it is.
        pieces: {stage: its text in that file}.
    """
    from dvc.utils.serialize import dumps_yaml

    head = dumps_yaml({"schema": data["schema"], "stages": None}).removesuffix("\n")
    texts = [f"{head}\n"]
    for name, stage in data["stages"].items():
        if before["stages"].get(name) == stage:
            texts.append(pieces[name])
        else:
            lines = dumps_yaml({"stages": {name: stage}})
            texts.append(lines.partition("\n")[2])
    return "".join(texts)
