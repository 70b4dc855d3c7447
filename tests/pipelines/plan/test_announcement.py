"""Tests what the plan says, of rows made by hand."""

from dataclasses import replace

import pytest

from pipelines.plan import announcement
from pipelines.plan.rows import MADE, NEW, Row
from pipelines.release_totals import Total


def row(client: str, name: str, state: str, epsilon: float, cap: float | None) -> Row:
    is_above = cap is not None and epsilon > cap
    total = Total(epsilon, 1e-5, cap, is_above, f"{epsilon:.3f}")
    stage = f"train_generator@digits-{client}-{name}"
    return Row(client, name, stage, state, 3.0, 1e-5, total)


def test_equal_clients_are_told_once():
    rows = [row(client, "dp_moments", NEW, 3.0, None) for client in ("c0", "c1", "c2")]
    rows.append(row("c2", "datalens", MADE, 3.0, None))
    nothing = Total(0.0, 1e-5, None, False, "0.000")
    told = announcement.lines("digits", rows, dict.fromkeys(("c0", "c1", "c2"), nothing))
    assert [block.split("\n")[0] for block in told] == [
        "digits, c0 and c1: epsilon 0.000 at delta 1e-05 so far, no cap",
        "digits, c2: epsilon 0.000 at delta 1e-05 so far, no cap",
    ]
    assert told[1].split("\n")[-1].split() == ["datalens", "made", "before", "3", "1e-05", "3.000"]


def test_only_a_new_release_is_above_a_cap():
    """A release that was made under a larger cap stays made."""
    made = row("c0", "dp_moments", MADE, 9.0, 5.0)
    new = row("c0", "datalens", NEW, 9.0, 5.0)
    text = "\n".join(announcement.table([made, new]))
    assert text.count("ABOVE THE CAP of 5") == 1
    assert announcement.summary("digits", [made]) == [
        "digits: no release is new, so that `dvc repro` spends nothing."
    ]


def test_the_first_refused_stage_ends_the_run():
    rows = [row("c0", "datalens", NEW, 4.0, 5.0), row("c0", "dp_moments", NEW, 6.0, 5.0)]
    rows.append(row("c0", "dp_merf", NEW, 7.0, 5.0))
    told = announcement.summary("digits", rows)
    assert told[0] == "digits, c0: 3 new releases"
    assert told[-1].endswith("at train_generator@digits-c0-dp_moments.")
    assert len(told) == 3


@pytest.mark.parametrize(("count", "said"), [(1, "1 new release"), (2, "2 new releases")])
def test_new_releases_are_counted(count, said):
    rows = [row("c0", f"g{number}", NEW, 1.0, None) for number in range(count)]
    assert announcement.summary("digits", rows) == [f"digits, c0: {said}"]


def test_whom_new_releases_trust_is_told_once_for_each_group():
    trusts = {"c0": "One may talk.", "c1": None, "c2": "One may talk.", "c3": "None may talk."}
    rows = []
    for client, trust in trusts.items():
        rows.append(replace(row(client, "joint", NEW, 1.0, None), trust=trust))
        rows.append(replace(row(client, "joint", MADE, 1.0, None), trust="It held."))
    assert announcement.summary("digits", rows)[1:] == [
        "digits, c0 and c2, joint: One may talk.",
        "digits, c3, joint: None may talk.",
    ]
