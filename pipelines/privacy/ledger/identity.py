"""Tells one release from another by the facts that shape it, and by nothing else.

A parameter of a release is a fact or a consequence. Facts are what somebody chose: a budget, a
seed, a setting. Consequences, such as a noise deviation or a sentence about it, follow from facts
and the mechanism's version. Only facts identify a release, so that a better accountant or another
wording makes nobody pay again.

>>> identity = Identity(consequences=frozenset({"sigma"}))
>>> identity.facts({"epsilon": 3.0, "sigma": 1.26, "settings": {"clip": 1.0}}, "formal")
{'guarantee': 'formal', 'epsilon': 3.0, 'settings.clip': 1.0}
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

DIGITS = 6


@dataclass(frozen=True)
class Identity:
    """Declares which parameters of a mechanism's releases are no facts.

    Parameters are named by dotted paths such as `settings.momentum`. A path stands for all that
    lies below it. Every parameter counts unless it is declared here. So a forgotten declaration
    charges a release anew, and never hands out another one for it.

    Attributes:
        consequences: Parameters that follow from others.
        free: Settings that shape no release.
        neutral: By path, the value at which the release is as it was before this setting existed.
        searched: Numbers that a search finds to their last bits; six digits of them count.
        renamed: The path today, by the path in older ledgers.
    """

    consequences: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()
    neutral: Mapping[str, object] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    searched: frozenset[str] = frozenset()

    def facts(self, parameters: Mapping, guarantee: str | None) -> dict[str, object]:
        """Returns all that identifies a release with these parameters, as values by path.

        Args:
            parameters: Those of a `Release`, or of an entry that an older version of this code
                wrote.
            guarantee: The statement's, `formal` or `none`. Noise that voids the guarantee makes
                another release. Where there is no guarantee anyway, the name of the noise counts.
        """
        facts = {"guarantee": guarantee}
        if guarantee != "formal":
            facts["noise"] = parameters.get("noise")
        for old_path, value in _flattened(parameters):
            path = self.renamed.get(old_path, old_path)
            if self._counts(path, value):
                facts[path] = _rounded(value) if path in self.searched else value
        return facts

    def below(self, prefix: str) -> "Identity":
        """Returns the same declarations for parameters below `prefix` in another release."""

        def moved(path: str) -> str:
            return f"{prefix}.{path}"

        return Identity(
            consequences=frozenset(map(moved, self.consequences)),
            free=frozenset(map(moved, self.free)),
            neutral={moved(path): value for path, value in self.neutral.items()},
            renamed={moved(old): moved(new) for old, new in self.renamed.items()},
            searched=frozenset(map(moved, self.searched)),
        )

    def __or__(self, other: "Identity") -> "Identity":
        """Returns the declarations of both."""
        return Identity(
            consequences=self.consequences | other.consequences,
            free=self.free | other.free,
            neutral={**self.neutral, **other.neutral},
            renamed={**self.renamed, **other.renamed},
            searched=self.searched | other.searched,
        )

    def _counts(self, path: str, value: object) -> bool:
        """Returns True if a parameter is a fact."""
        left_out = self.consequences | self.free
        if any(path == each or path.startswith(f"{each}.") for each in left_out):
            return False
        return path not in self.neutral or value != self.neutral[path]


def _flattened(content: Mapping, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yields the dotted path and the value of everything that is no mapping."""
    for name, value in content.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{path}.")
        else:
            yield path, value


def _rounded(value: object) -> object:
    """Returns a float with six digits, and anything else as it is."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
