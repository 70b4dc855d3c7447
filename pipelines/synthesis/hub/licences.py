"""Finds the standard identifier of a licence that a user named in words.

>>> of("CC BY 4.0 (MedMNIST v2, J. Yang et al.)")
Licence(hub='cc-by-4.0', spdx='CC-BY-4.0')
>>> of("none stated (CIFAR-10)"), of("ours, ask us")
(Licence(hub='unknown', spdx=None), Licence(hub='other', spdx=None))
"""

from typing import NamedTuple

# SPDX identifiers that the Hugging Face hub knows in lower case, too
STANDARD = (
    *("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "CC0-1.0"),
    *("CC-BY-2.0", "CC-BY-2.5", "CC-BY-3.0", "CC-BY-4.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0"),
    *("CC-BY-NC-2.0", "CC-BY-NC-3.0", "CC-BY-NC-4.0", "CC-BY-ND-4.0"),
    *("CC-BY-NC-ND-3.0", "CC-BY-NC-ND-4.0"),
    *("CC-BY-NC-SA-2.0", "CC-BY-NC-SA-3.0", "CC-BY-NC-SA-4.0"),
    *("CDLA-Permissive-1.0", "CDLA-Permissive-2.0", "CDLA-Sharing-1.0"),
)
# {words: identifier} where the hub's own differs from SPDX's, or people write another
FURTHER = {
    "odbl": ("odbl", "ODbL-1.0"),
    "odbl-1.0": ("odbl", "ODbL-1.0"),
    "odc-by": ("odc-by", "ODC-By-1.0"),
    "odc-by-1.0": ("odc-by", "ODC-By-1.0"),
    "pddl": ("pddl", "PDDL-1.0"),
    "pddl-1.0": ("pddl", "PDDL-1.0"),
    "cc0": ("cc0-1.0", "CC0-1.0"),
    "none-stated": ("unknown", None),
    "unknown": ("unknown", None),
    "": ("unknown", None),
}
BY_WORDS = {name.lower(): (name.lower(), name) for name in STANDARD} | FURTHER


class Licence(NamedTuple):
    """Names a licence.

    Attributes:
        hub: The identifier of the Hugging Face hub, with `other` and `unknown`.
        spdx: The identifier of the SPDX list, or None.
    """

    hub: str
    spdx: str | None


def of(text: str) -> Licence:
    """Returns the identifiers of a licence.

    Args:
        text: The licence's name, then what a user adds in brackets.
    """
    words = text.partition("(")[0].lower().split()
    return Licence(*BY_WORDS.get("-".join(words), ("other", None)))
