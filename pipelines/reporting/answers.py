"""Answers the four questions that a reader has first, each in a headline and a few sentences.

They are: should these clients federate, by which road, is it private, what does it cost. All figures
are those of the recommended road (`choice`), and every verdict is one of `comparisons.verdict`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pipelines.reporting import worth
from pipelines.reporting.findings import handed_out, marked
from pipelines.reporting.formatting import amount, bound, number
from pipelines.words import names

NO_ROAD = (
    "No private road of use ran: what ran is an upper bound, has no guarantee, has collapsed, or "
    "learns from images that the plan calls noise."
)


class Answer(NamedTuple):
    """Holds the answer to one question.

    Attributes:
        question: The question.
        headline: The answer in a few words.
        sentences: What stands behind it.
    """

    question: str
    headline: str
    sentences: list[str]


def of_run(summary: dict, noisy: list[str], seeded: bool) -> list[Answer]:
    """Returns the four answers.

    Args:
        summary: What `summary.build` returned.
        noisy: The noisy algorithms of the parameters.
        seeded: Whether the privacy noise came from a seed, so that no guarantee holds.
    """
    return [
        federate(summary),
        road(summary, noisy),
        private(summary, seeded),
        cost(summary, noisy),
    ]


def federate(summary: dict) -> Answer:
    """Answers whether these clients should federate: who gains what, at home and elsewhere."""
    question = "Should these clients federate?"
    if summary["choice"] is None:
        return Answer(question, "This run cannot say", [NO_ROAD])
    name = summary["choice"]["road"]
    entry = summary["methods"][name]
    if not entry["gains"]:
        return Answer(question, "This run cannot say", ["No client trained alone (local)."])
    alone = summary["methods"]["local"]
    sentences = [*worth.at_home(entry, alone), worth.elsewhere(entry["elsewhere"])]
    return Answer(question, worth.headline(entry), sentences)


def road(summary: dict, noisy: list[str]) -> Answer:
    """Answers which road to take, and which others show no difference to it at home."""
    question = "Which road?"
    chosen = summary["choice"]
    if chosen is None:
        return Answer(question, "None to recommend", [NO_ROAD])
    sentences = [f"A client hands out {handed_out(chosen['road'], noisy)}."]
    others = len(chosen["candidates"]) - 1
    if chosen["equals"]:
        which = "road shows" if len(chosen["equals"]) == 1 else "roads show"
        sentences.append(
            f"At home {len(chosen['equals'])} more {which} no difference to the best "
            f"({names(chosen['equals'])}); on everybody's images this one is best of them."
        )
    elif others:
        sentences.append(f"At home it is ahead of the other {others} that may be recommended.")
    else:
        sentences.append("No other road ran that may be recommended.")
    if others:
        sentences.append("It was chosen on these test images, which favours it.")
    return Answer(question, chosen["road"], sentences)


def private(summary: dict, seeded: bool) -> Answer:
    """Answers whether the recommended road is private, at which epsilon, and what is spent."""
    question = "Is it private?"
    if seeded:
        return Answer(question, "No", ["The privacy noise came from a seed: a test, no guarantee."])
    voided = [
        marked(name, entry)
        for name, entry in summary["methods"].items()
        if entry["guarantee"] == "none" and not entry["upper_bound"]
    ]
    also = [f"No guarantee holds for {names(voided)}."] if voided else []
    if summary["choice"] is None:
        return Answer(question, "No road to ask about", [NO_ROAD, *also])
    entry = summary["methods"][summary["choice"]["road"]]
    if "delta" not in entry:
        return Answer(question, "Yes: nothing leaves a client", also)
    headline = f"Yes: ε at most {bound(entry['epsilon_max'])} at δ {bound(entry['delta'])}"
    trust = entry.get("trust", [])
    sentences = [_accounted(entry), *trust, *spent(summary["clients"]), *also]
    return Answer(question, headline, sentences)


def spent(clients: Mapping[str, dict]) -> list[str]:
    """Returns what the ledgers say that all releases together came to, and the caps.

    Args:
        clients: The clients of the summary.
    """
    totals = []
    capped = []
    beyond = []
    for client, entry in clients.items():
        total = float(entry["ledger"]["epsilon"])
        (totals if total < float("inf") else beyond).append((total, client))
        if entry["cap"] is not None:
            capped.append(client)
    sentences = []
    if totals:
        least = min(totals)
        most = max(totals)
        figures = f"ε {bound(most[0])}"
        if least[0] < most[0]:
            figures = f"ε {bound(least[0])} ({least[1]}) to {bound(most[0])} ({most[1]})"
        delta = bound(clients[most[1]]["ledger"]["delta"], 3)
        sentences.append(
            f"Spent so far, all releases of a client together: {figures} at δ {delta}."
        )
    if beyond:
        who = names([client for _, client in beyond])
        sentences.append(f"Of all releases of {who} together nothing is claimed.")
    cap = f"A lifetime cap is set for {names(capped)}." if capped else "No lifetime cap is set."
    return [*sentences, cap]


def cost(summary: dict, noisy: list[str]) -> Answer:
    """Answers what the recommended road costs, beside the best road of the other kind."""
    question = "What does it cost?"
    chosen = summary["choice"]
    if chosen is None:
        return Answer(question, "No road to ask about", [NO_ROAD])
    methods = summary["methods"]
    entry = methods[chosen["road"]]
    headline = f"{amount(entry['bytes_up'])} up, {_rounds(entry)}"
    clients = len(entry["clients"])
    sentences = [
        f"Up from all {clients} clients together, {amount(entry['bytes_down'])} down; "
        f"{number(entry['seconds'], '.3g')} s of shared training. "
        "The making of synthetic images is not in it."
    ]
    kind = handed_out(chosen["road"], noisy)
    others = [name for name in chosen["candidates"] if handed_out(name, noisy) != kind]
    if others:
        other = max(others, key=lambda name: methods[name]["mean_accuracy"])
        sentences.append(
            f"For comparison {other}, which hands out {handed_out(other, noisy)}: "
            f"{amount(methods[other]['bytes_up'])} up, {_rounds(methods[other])}."
        )
    return Answer(question, headline, sentences)


def _accounted(entry: dict) -> str:
    """Returns what stands beside the epsilon of a method."""
    text = "Per {unit} ({relation}; sampling: {sampling}), by {accountant}."
    return text.format(**entry)


def _rounds(entry: dict) -> str:
    """Returns a method's number of rounds in words."""
    count = entry["rounds"]
    if not count:
        return "no rounds"
    return f"{number(count, 'g')} round{'' if count == 1 else 's'}"
