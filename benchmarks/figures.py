"""Writes the pages whose figures come from stored results.

    make figures      # docs/results.md, docs/noisy_training.md, parts of other pages; seconds

A template is Jinja's. It names a benchmark and a row of its results, never a figure:

    {{ row("dp_head", dataset="mnist", records=12000, epsilon=1.0, clients=1).accuracy | accuracy }}

A sentence that states a fact says which figures it rests on, `{{ holds(gain.worst > 0) }}`. The
page is refused where they no longer carry it. A test fails where a committed page differs from what
this command writes, and where a template holds a figure of its own.
"""

import json
import re
import textwrap
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import jinja2

from benchmarks import common
from pipelines.files import write_text

TEMPLATES = Path("docs/templates")
# {template: the page}
PAGES = {
    "worth.md.j2": Path("README.md"),
    "results.md.j2": Path("docs/results.md"),
    "secure_sum_cost.md.j2": Path("docs/secure_sums.md"),
    "joint.md.j2": Path("docs/secure_sums.md"),
    "outer_loop.md.j2": Path("docs/federation.md"),
    "round_costs.md.j2": Path("docs/federation.md"),
    "moments_utility.md.j2": Path("docs/synthesis.md"),
    "digits_utility.md.j2": Path("docs/synthesis.md"),
    "datalens_teachers.md.j2": Path("docs/synthesis.md"),
    "datalens_measured.md.j2": Path("docs/synthesis.md"),
    "datalens_options.md.j2": Path("docs/synthesis.md"),
    "generator_utility.md.j2": Path("docs/synthesis.md"),
    "teacher_costs.md.j2": Path("docs/synthesis.md"),
    "rehearsed.md.j2": Path("docs/synthesis.md"),
    "noisy_training.md.j2": Path("docs/noisy_training.md"),
}
# a page that is more than a template's has this part of its own
PART = "<!-- made by `make figures` from docs/templates/{template} -->\n"
END = "<!-- end of what is made -->\n"
WIDTH = 140
# the first characters of a block of Markdown whose lines mean something
AS_IT_IS = re.compile(r"[|#!<]|    ")


def written(template: str) -> str:
    """Returns a page as it should be.

    Args:
        template: Name of a file in TEMPLATES.

    Raises:
        ValueError: If the results do not carry the template, as `rendered` says.
    """
    path = PAGES[template]
    made = rendered(template)
    begin = PART.format(template=template)
    if not path.exists() or begin not in (text := path.read_text()):
        return made
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(END)
    return before + begin + made + END + after


def rendered(template: str) -> str:
    """Returns a template with its figures.

    Args:
        template: Name of a file in TEMPLATES.

    Raises:
        ValueError: If no row or several fit what the template names, or a sentence does not hold.
        jinja2.UndefinedError: If a row has no such column.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"row": row, "rows": rows, "stored": stored, "holds": holds}
    environment.globals["cifar10"] = common.CIFAR10
    environment.tests["match"] = lambda text, pattern: re.fullmatch(pattern, text) is not None
    environment.filters |= {
        "accuracy": partial(number, decimals=3),
        "ratio": partial(number, decimals=2),
        "tenth": partial(number, decimals=1),
        "gain": gain,
        "count": count,
    }
    return wrapped(environment.get_template(template).render())


def wrapped(text: str) -> str:
    """Returns Markdown with its paragraphs and list items wrapped anew, and no two empty lines.

    Tables, headings, pictures, comments and code stay as they are.
    """
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if AS_IT_IS.match(block):
            blocks.append(block)
            continue
        items = re.split(r"\n(?=- )", block)
        blocks.append("\n".join(_wrapped(item) for item in items))
    return "\n\n".join(blocks) + "\n"


def _wrapped(item: str) -> str:
    """Returns one paragraph or list item."""
    return textwrap.fill(
        " ".join(item.split()),
        WIDTH,
        subsequent_indent="  " if item.startswith("- ") else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def rows(name: str, **key: object) -> list[SimpleNamespace]:
    """Returns the rows of a benchmark that have all items of a key.

    Args:
        name: Name of the benchmark.
        **key: Columns and what they hold.

    Raises:
        ValueError: If there is none.
    """
    fitting = [SimpleNamespace(**found) for found in common.kept(name) if common.has(found, key)]
    if not fitting:
        raise ValueError(f"benchmarks/results/{name}.json has no row with {key}.")
    return fitting


def row(name: str, **key: object) -> SimpleNamespace:
    """Returns the one row of a benchmark that has all items of a key.

    Raises:
        ValueError: If there is none, or more than one.
    """
    fitting = rows(name, **key)
    if len(fitting) > 1:
        raise ValueError(
            f"benchmarks/results/{name}.json has {len(fitting)} rows with {key}. Name one."
        )
    return fitting[0]


def stored(name: str) -> dict:
    """Returns all that a benchmark stored, its summary figures too."""
    return json.loads((common.RESULTS / f"{name}.json").read_text())


def holds(condition: bool) -> str:
    """Returns nothing where the figures carry a sentence.

    Raises:
        ValueError: If they do not.
    """
    if not condition:
        raise ValueError("A sentence of the page no longer follows from the stored results.")
    return ""


def number(value: float, decimals: int) -> str:
    """Returns a number with so many decimals."""
    return f"{float(value):.{decimals}f}"


def gain(value: float) -> str:
    """Returns a difference with its sign and three decimals; zero has no sign."""
    text = f"{value:+.3f}"
    return "0.000" if float(text) == 0 else text


def count(value: float) -> str:
    """Returns a whole number with commas between thousands."""
    return f"{round(value):,}"


def main() -> None:
    """Writes the pages and names them."""
    for template, path in PAGES.items():
        write_text(path, written(template))
        print(path)


if __name__ == "__main__":
    main()
