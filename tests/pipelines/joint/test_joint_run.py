"""Tests what all sides of a joint release must have alike."""

import pytest

pytest.importorskip("nvflare", reason="needs the extra `flare`")

from apart import CLIENTS
from joint_federation import RUN

from pipelines import config
from pipelines.errors import UserError
from pipelines.joint.joint_run import JointRun
from pipelines.synthesis import joint_release


@pytest.mark.parametrize(
    ("change", "different"),
    [
        (lambda params: params["clients"]["c0"].update(epsilon=2.0), {"budget", "sums"}),
        (lambda params: params["privacy"].update(delta=1e-6), {"budget", "sums"}),
        (lambda params: params["privacy"].update(trust="none"), {"trust", "sums"}),
        (
            lambda params: params["federation"]["roster"].update(c1="0" * 63 + "1"),
            {"roster", "sums"},
        ),
        (lambda params: params["privacy"].update(trust="t_of_k"), set()),
        (
            lambda params: params["profiles"]["own"]["synthesis"].update(
                joint_moments={"count_weight": 0.9}
            ),
            {"settings", "sums"},
        ),
        (lambda params: params.update(seed=99), set()),
    ],
)
def test_what_all_sides_must_have_alike_is_named(federation, change, different):
    with federation.home("c0") as params:
        before = RUN.terms(params)
    assert before == RUN.terms(config.load())
    federation.apart.homes["c0"].edit(change)
    with federation.home("c0") as params:
        after = RUN.terms(params)
    assert {name for name in before if before[name] != after[name]} == different


def test_clients_whose_generators_follow_the_same_votes_have_one_seed(federation):
    run = JointRun("own", "joint_datalens")
    federation.apart.edit(lambda params: params["synthesis"].update(generators=[run.generator]))
    with federation.home("c0") as params:
        before = run.terms(params)
    federation.apart.homes["c0"].edit(lambda params: params.update(seed=99))
    with federation.home("c0") as params:
        after = run.terms(params)
    assert {name for name in before if before[name] != after[name]} == {"seed"}


LOW = {"below": 1000.0, "cutoff": 8, "residual_clip": 1.0, "first_share": 0.6, "inflation": 1.0}


@pytest.mark.parametrize(
    ("generator", "settings", "different"),
    [
        ("joint_datalens", {"teachers": "auto", "weak_plan": "warn"}, {"teachers"}),
        ("joint_moments", {"low_signal": LOW}, {"signal", "sums"}),
    ],
)
def test_clients_that_declare_other_numbers_of_records_plan_something_else(
    federation, generator, settings, different
):
    run = JointRun("own", generator)

    def change(params: dict) -> None:
        params["synthesis"]["generators"] = [generator]
        params["profiles"]["own"]["synthesis"][generator] = settings
        params["clients"]["c0"]["records"] = 300

    federation.apart.homes["c0"].edit(change)
    with federation.home("c0") as params:
        before = run.terms(params)
    more = {"records": 9000}
    federation.apart.homes["c0"].edit(lambda params: params["clients"]["c0"].update(more))
    with federation.home("c0") as params:
        after = run.terms(params)
    assert {name for name in before if before[name] != after[name]} == different


def test_clients_of_different_budgets_make_no_release_together(federation):
    federation.apart.server.edit(lambda params: params["clients"]["c1"].update(epsilon=1.0))
    with pytest.raises(UserError, match="ask for one epsilon and delta, and c2 and c1 do not"):
        RUN.terms(config.load())


def test_the_roster_says_who_releases_together_whoever_is_on_this_machine(federation):
    with federation.home("c0") as params:
        assert joint_release.groups(params) == [CLIENTS]
