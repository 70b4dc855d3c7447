"""Lets a block of settings begin from another one: `base: fedavg`.

Inheritance happens here and not by YAML's merge keys, because DVC writes all that is merged into a
file when `dvc exp run -S` changes one value of it.
"""

from collections.abc import Callable

from pipelines.config.places import belongs_in
from pipelines.config.values import mistake

BASE = "base"


def with_bases(
    group: dict,
    path: tuple[str, ...],
    outside: dict[str, dict],
    inherited: Callable[[tuple, tuple], None],
) -> dict:
    """Returns the blocks of a group, each with what it has from its base; no `base` is left.

    Args:
        group: {name: block}; what is no mapping is left as it is.
        path: Where the group stands in the settings, such as ("baselines",).
        outside: {name: block} of the bases that stand outside of the group, at the top.
        inherited: Is given the paths of a value that a block has from its base, and of that
            value at the base.

    Raises:
        UserError: A block names no block as its base, or one whose bases lead back to it.
    """
    places = {name: (name,) for name in outside} | {name: (*path, name) for name in group}
    blocks = {**outside, **group}

    def resolved(name: str, above: tuple[str, ...]) -> dict:
        block = blocks[name]
        if not isinstance(block, dict) or BASE not in block:
            return block
        base = block[BASE]
        where = ".".join([*map(str, places[name]), BASE])
        if not isinstance(base, str) or not isinstance(blocks.get(base), dict):
            known = sorted(other for other, held in blocks.items() if _is_base(other, held, name))
            rule = f"another block, of {', '.join(known) or 'which there is none'}"
            raise mistake(where, base, rule, belongs_in(path))
        if base in (*above, name):
            chain = " -> ".join([*above, name, base])
            rule = f"a block whose own bases do not lead back ({chain})"
            raise mistake(where, base, rule, belongs_in(path))
        merged = dict(resolved(base, (*above, name)))
        for key in merged.keys() - block.keys():
            inherited((*places[name], key), (*places[base], key))
        merged |= block
        del merged[BASE]
        return merged

    return {name: resolved(name, ()) for name in group}


def _is_base(name: object, block: object, heir: str) -> bool:
    return isinstance(name, str) and isinstance(block, dict) and name != heir
