"""index.html: one file with everything in it, for a reader without a network."""

import base64
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipelines.config import Params
from pipelines.privacy.statement import NOT_COVERED
from pipelines.reporting import new_clients
from pipelines.reporting.comparisons import sentences
from pipelines.reporting.findings import (
    UPPER_BOUND,
    accounts,
    apart_last,
    best,
    facts,
    not_private,
    warnings,
)
from pipelines.reporting.formatting import amount, bound, number

HERE = Path(__file__).parent


def page(params: Params, reports: list[dict]) -> str:
    """The whole page.

    Args:
        reports: per data set {"summary": summary.build's dict, "grids": {CLIENT: {GENERATOR: PNG bytes}}, "pictures":
            {NAME: PNG bytes}, "roads": roads.rows', "new_clients": {"points", "held_out", "remarks"} or None}.
    """
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "bound": bound, "amount": amount, "png": data_uri}
    environment.filters |= {
        "not_private": not_private,
        "sentences": sentences,
        "apart_last": apart_last,
    }
    environment.filters |= {"newcomers": new_clients.sentences}
    environment.globals |= {"best": best, "accounts": accounts, "UPPER_BOUND": UPPER_BOUND}
    views = [
        {**report, "facts": facts(report["summary"]), "warnings": warnings(report["summary"])}
        for report in reports
    ]
    template = environment.get_template("template.html.j2")
    return template.render(params=params, reports=views, not_covered=NOT_COVERED)


def data_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()
