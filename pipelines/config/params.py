"""Holds all settings, whose blocks agree with one another, and loads them from their files."""

from pathlib import Path

from pydantic import ValidationError, ValidationInfo, model_validator

from pipelines.config.blocks import Blocks
from pipelines.config.checks import Checks
from pipelines.config.files import Assembled, assemble
from pipelines.config.places import PARAMS, belongs_in
from pipelines.config.values import sentences
from pipelines.errors import UserError


class Params(Blocks):
    """Holds settings whose blocks agree with one another."""

    @model_validator(mode="after")
    def _blocks_agree(self, info: ValidationInfo):
        Checks(self, (info.context or {}).get("file", belongs_in)).all()
        return self


def load(path: Path = Path(PARAMS)) -> Params:
    """Reads and checks params.yaml, and the files of settings/ and profiles/ beside it.

    Raises:
        UserError: With one sentence for each mistake in the files.
    """
    return checked(assemble(path))


def checked(files: Assembled) -> Params:
    """Returns the settings that the files come to.

    Raises:
        UserError: With one sentence for each mistake.
    """
    try:
        return Params.model_validate(files.content, context={"file": files.file})
    except ValidationError as error:
        raise UserError(sentences(error, file=files.file)) from None


def summary(params: Params) -> str:
    """Returns one line about files that are as they should be."""
    counts = {
        "data set": params.datasets,
        "client": params.clients,
        "generator": params.synthesis.generators,
        "baseline": params.baselines.algorithms,
        "noisy baseline": params.dp_baselines.algorithms,
    }
    parts = [
        f"{len(names)} {name}{'' if len(names) == 1 else 's'}" for name, names in counts.items()
    ]
    return f"params.yaml is valid: {', '.join(parts)}."
