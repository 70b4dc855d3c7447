"""Writes a card in words: first what was promised to whom, then the privacy block, then the rest.

>>> description = {
...     "name": "digits/c0/gan",
...     "weak": [],
...     "privacy": {
...         "guarantee": "none",
...         "unit": "record",
...         "statement": "NO PRIVACY GUARANTEE: gan is not private at all (epsilon infinite).",
...     },
... }
>>> print(*promise(description), sep="\\n")
**Nothing was promised to anyone.** NO PRIVACY GUARANTEE: gan is not private at all (epsilon infinite).
These images may show any record of client `c0` of `digits`.
"""

from pipelines.privacy.statement import at_least


def markdown(description: dict) -> str:
    """Returns the text of a card.

    Args:
        description: The card, from `export.card`.
    """
    privacy = description["privacy"]
    datasheet = description["datasheet"]
    parts = [
        f"# Synthetic images {description['name']}",
        "\n".join(promise(description)),
    ]
    for reason in description["weak"]:
        parts.append(f"> **Weak:** {reason}")
    details = {f"`{name}`": value for name, value in privacy["details"].items()}
    trust = details.pop("`trust`", None)
    parts += ["## Privacy", _table(_privacy_rows(description))]
    if trust:
        parts += ["### Epsilon by how many clients collude", _trust_table(trust)]
    parts += ["### Parameters of the mechanism", _table(details)]
    if "classifier" in description:
        parts += ["## Classifier", "\n".join(classifier(description["classifier"]))]
    parts += [
        "## Datasheet",
        _table(datasheet | _named(datasheet)),
        "## Metrics that need no private data",
        _table(description["public_metrics"]),
    ]
    return "\n\n".join(parts) + "\n"


def promise(description: dict) -> list[str]:
    """Returns lines that say in words what was promised to whom.

    Args:
        description: The card, from `export.card`.
    """
    privacy = description["privacy"]
    dataset, client, _ = description["name"].split("/")
    if privacy["guarantee"] != "formal":
        return [
            f"**Nothing was promised to anyone.** {privacy['statement']}",
            f"These images may show any {privacy['unit']} of client `{client}` of `{dataset}`.",
        ]
    who = f"client `{client}`"
    if "together" in description:
        who = f"any of the {len(description['together'])} clients that made this release together"
    return [
        f"**Promised to each single {privacy['unit']}** that {who} of `{dataset}` "
        f"trained on: {privacy['statement']}",
        "",
        f"- Epsilon is {at_least(float(privacy['epsilon']))} and delta is "
        f"{at_least(float(privacy['delta']))}. "
        "With epsilon 0 the images would say nothing of it.",
        f"- Compared are any two training parts that differ in one: {privacy['relation']}.",
        f"- Not covered: {'; '.join(privacy['not_covered'])}.",
    ]


def classifier(facts: dict) -> list[str]:
    """Returns lines that say which classifier was released beside the images.

    Args:
        facts: What the card says of it.
    """
    height, width, channels = facts["shape"]
    return [
        f"The export also holds `{facts['file']}`: the weights of a classifier, a network "
        f"`{facts['network']}` for {facts['classes']} classes of images of "
        f"{height}x{width}x{channels}.",
        "The release that the images are drawn from paid for it, too. So it has cost no further "
        "privacy, and handing it out costs none.",
        "What this card says of the images' privacy holds for the images and the classifier "
        "together.",
    ]


def class_names(description: dict) -> list[str]:
    """Returns a name per class, by label. Without declared names it is the label.

    Args:
        description: The card, from `export.card`.
    """
    classes = len(description["public_metrics"]["images_per_class"])
    names = description["datasheet"].get("class_names")
    return names or [str(label) for label in range(classes)]


def _privacy_rows(description: dict) -> dict:
    privacy = description["privacy"]
    together = description.get("together", {})
    _, holder, _ = description["name"].split("/")
    others = {}
    for client, name in together.items():
        if client != holder:
            others[f"the same, as the ledger of `{client}` knows it"] = name
    if "sealed" in description:
        others["signed by"] = ", ".join(description["sealed"]["signatures"])
    return {
        "release, as the client's ledger knows it": description["release"],
        **others,
        "guarantee": privacy["guarantee"],
        "epsilon": privacy["epsilon"],
        "delta": privacy["delta"],
        "mu (Gaussian DP)": privacy["mu"],
        "unit": privacy["unit"],
        "neighbouring relation": privacy["relation"],
        "sampling": privacy["sampling"],
        "accountant": privacy["accountant"],
        "mechanism": privacy["mechanism"],
        "noise": privacy["noise"],
        "not covered": "; ".join(privacy["not_covered"]),
    }


def _trust_table(trust: dict) -> str:
    """Returns epsilon by the number of clients that collude, and by what the server does.

    >>> print(_trust_table({"dishonest": {"0": 2.25, "1": "inf"}}))
    | clients that put what they know together | server: dishonest |
    |---|---|
    | 0 | 2.25 |
    | 1 | inf |
    """
    heads = ["clients that put what they know together", *(f"server: {kind}" for kind in trust)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for colluding in next(iter(trust.values())):
        cells = [colluding, *(f"{float(kind[colluding]):.3g}" for kind in trust.values())]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _named(datasheet: dict) -> dict:
    """Returns the classes' names by label, where the profile declares them."""
    class_names = datasheet.get("class_names", ())
    names = "; ".join(f"{label}: {name}" for label, name in enumerate(class_names))
    return {"class_names": names} if names else {}


def _table(rows: dict) -> str:
    lines = ["| | |", "|---|---|"]
    for name, value in rows.items():
        # a bar would end the cell
        shown = str(value).replace("|", "\\|")
        lines.append(f"| {name.replace('_', ' ')} | {shown} |")
    return "\n".join(lines)
