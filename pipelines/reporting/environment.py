"""Sets up jinja for the report's templates: where they lie, and what they may call."""

import base64
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipelines import words
from pipelines.evaluation import image_quality
from pipelines.evaluation.metrics import other_metrics
from pipelines.reporting import comparisons, findings, formatting, new_clients, views

TEMPLATES = Path(__file__).parent / "templates"
# What the files of curves hold that lie beside the page.
PLOT_TABLES = {
    "rounds": "accuracy at home per round, a column per method",
    "global_rounds": "accuracy of the shared model per round",
    "epsilon": "what each client's epsilon bought",
    "new_clients": "accuracy of new clients by number of labels",
}


def environment() -> Environment:
    """Returns jinja's environment with all that the templates call. What they print is escaped."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": formatting.number,
        "bound": formatting.bound,
        "amount": formatting.amount,
        "names": words.names,
        "png": data_uri,
        "not_private": findings.not_private,
        "sentences": comparisons.sentences,
        "newcomers": new_clients.sentences,
    }
    made.globals |= {
        "best": findings.best,
        "accounts": findings.accounts,
        "other_metrics": other_metrics,
        "image_metrics": image_quality.on_pages,
        "UPPER_BOUND": findings.UPPER_BOUND,
        "GRAVE": findings.GRAVE,
        "MANY": views.MANY,
        "MOST_GRIDS": views.MOST_GRIDS,
        "PLOT_TABLES": PLOT_TABLES,
    }
    return made


def data_uri(png: bytes) -> str:
    """Returns a picture as an address that holds its bytes.

    Example:
        >>> data_uri(b"png")
        'data:image/png;base64,cG5n'
    """
    return "data:image/png;base64," + base64.b64encode(png).decode()
