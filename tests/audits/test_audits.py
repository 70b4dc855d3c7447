"""Attacks the real mechanisms in short form.

No more may leak than is claimed, at least 0.8 of the claim must be found, and broken mechanisms
must be caught. The noise is the operating system's, so every bound holds at 0.999.
"""

import ast
import json
import math
import re
import sys

import numpy as np
import pytest
from imports import ROOT, closure, imported

from audits import __main__ as command
from audits import (
    datalens_votes,
    dp_head_step,
    dp_merf_release,
    dp_moments_canaries,
    dp_moments_fit,
    dp_moments_release,
    dp_teacher_step,
    dpsgd_step,
    nearest_neighbour,
    plot,
    suite,
)
from pipelines.federation.algorithms import dpsgd
from pipelines.privacy import accounting, lattice_gradients
from pipelines.privacy.audits.verdict import of_epsilon, of_mu
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.reporting import canvas
from pipelines.synthesis import dp_merf, dp_moments, dp_moments_sums, dp_teacher
from pipelines.synthesis.datalens import generator as datalens
from pipelines.synthesis.datalens import votes

BUDGET, NOISE = suite.BUDGET, OsEntropy()
FEW = 1000  # runs that suffice for a bug
TEN = datalens_votes.SETTINGS.model_copy(update={"batch": 10, "steps": 1})


def holds(verdict) -> bool:
    return verdict.passed and verdict.mu_lower >= 0.8 * verdict.mu_claimed


def no_noise(*args, **kwargs):
    return np.zeros(args[0], np.int64)


def twice(function):
    return lambda *args, **kwargs: 2 * function(*args, **kwargs)


# what must hold


def test_vote_sums_leak_what_they_claim():
    verdict = datalens_votes.audit(BUDGET, runs=6000, noise=NOISE)
    assert holds(verdict)
    assert verdict.mu_claimed == BUDGET.mu


def test_both_releases_of_dp_moments_leak_what_they_claim_alone_and_together():
    found = dp_moments_release.audit(BUDGET, runs=8000, noise=NOISE)
    assert all(holds(verdict) for verdict in found.values())
    first, second, both = (
        found[name].mu_claimed for name in ("dp_moments_first", "dp_moments_second", "dp_moments")
    )
    assert math.hypot(first, second) == pytest.approx(both) == pytest.approx(BUDGET.mu)


def test_a_dpsgd_step_leaks_what_it_claims():
    assert holds(dpsgd_step.audit(BUDGET, runs=5000, noise=NOISE))


def test_the_release_of_dp_merf_leaks_what_it_claims():
    verdict = dp_merf_release.audit(BUDGET, runs=6000, noise=NOISE)
    assert holds(verdict)
    assert verdict.mu_claimed == BUDGET.mu


@pytest.mark.slow
def test_a_step_of_dp_teacher_leaks_what_its_share_claims():
    verdict = dp_teacher_step.audit(BUDGET, runs=5000, noise=NOISE)
    assert holds(verdict)
    assert verdict.mu_claimed**2 == pytest.approx(0.6 * BUDGET.mu**2)


def test_a_step_of_dp_head_leaks_what_its_steps_claim():
    verdict = dp_head_step.audit(BUDGET, runs=8000, noise=NOISE)
    assert holds(verdict)
    assert verdict.mu_claimed**2 == pytest.approx(0.99 * BUDGET.mu**2)


# the worst cases are the worst


def test_the_canary_moves_the_sum_of_the_head_by_one():
    worlds = [
        dp_head_step.total(with_it, dp_head_step.SETTINGS, 2**40) for with_it in (True, False)
    ]
    assert np.linalg.norm(worlds[0] - worlds[1]) / 2**40 == pytest.approx(1.0, abs=1e-5)


def test_the_flipped_teacher_moves_the_votes_by_their_whole_sensitivity():
    difference = datalens_votes.totals(TEN, flipped=True) - datalens_votes.totals(
        TEN, flipped=False
    )
    assert np.linalg.norm(difference) == pytest.approx(votes.sensitivity(top_k=TEN.top_k, batch=10))


def test_the_canary_moves_both_sums_by_one():
    plan = dp_moments.plan(dp_moments_release.SETTINGS, BUDGET, dp_moments_release.SPACE)
    shards, scale = (
        dp_moments_release.worlds_of(plan),
        plan.statement.details["lattice_steps_per_unit"],
    )
    means = np.zeros((2, 3))
    for sums in (
        [dp_moments_release._first(shard, plan) for shard in shards],
        [dp_moments_release._second(s, means, plan) for s in shards],
    ):
        assert np.linalg.norm(sums[1] - sums[0]) / scale == pytest.approx(1.0, abs=1e-6)


def test_the_canary_s_gradient_is_as_long_as_the_clip():
    direction = dpsgd_step._direction(dpsgd_step.SETTINGS)
    assert np.linalg.norm(direction) == pytest.approx(dpsgd_step.SETTINGS.clipping_norm, rel=1e-5)


# bugs: each must fail


def test_a_halved_vote_sensitivity_is_caught(monkeypatch):
    monkeypatch.setattr(votes, "sensitivity", lambda *, top_k, batch: math.sqrt(top_k * batch))
    assert not datalens_votes.audit(BUDGET, runs=FEW, noise=NOISE).passed


def test_a_batch_of_ten_charged_once_is_caught(monkeypatch):
    monkeypatch.setattr(votes, "sensitivity", lambda *, top_k, batch: 2 * math.sqrt(top_k))
    assert not datalens_votes.audit(BUDGET, runs=FEW, noise=NOISE, settings=TEN).passed


def test_steps_that_are_not_composed_are_caught(monkeypatch):
    """The mechanism has a plan for one step and runs four."""
    four = datalens_votes.SETTINGS.model_copy(update={"steps": 4})
    plan = datalens.plan
    once = datalens_votes.SETTINGS.model_copy(update={"steps": 1})
    monkeypatch.setattr(datalens, "plan", lambda settings, budget, space: plan(once, budget, space))
    assert not datalens_votes.audit(BUDGET, runs=FEW, noise=NOISE, settings=four).passed


def test_two_votes_by_one_teacher_are_caught(monkeypatch):
    monkeypatch.setattr(votes, "tally", twice(votes.tally))
    assert not datalens_votes.audit(BUDGET, runs=FEW, noise=NOISE).passed


def test_dropped_noise_is_caught(monkeypatch):
    monkeypatch.setattr(OsEntropy, "discrete_gaussian", lambda self, shape, sigma: no_noise(shape))
    assert not datalens_votes.audit(BUDGET, runs=FEW, noise=NOISE).passed
    assert not any(
        verdict.passed
        for verdict in dp_moments_release.audit(BUDGET, runs=FEW, noise=NOISE).values()
    )
    assert not dp_moments_canaries.audit(Budget(1.0, 1e-5), canaries=1000, noise=NOISE).passed


@pytest.mark.parametrize("release", ["first", "second"])
def test_a_halved_sensitivity_of_either_moment_release_is_caught(monkeypatch, release):
    name = f"{release}_sum"
    monkeypatch.setattr(dp_moments_sums, name, twice(getattr(dp_moments_sums, name)))
    found = dp_moments_release.audit(BUDGET, runs=FEW, noise=NOISE)
    assert not found[f"dp_moments_{release}"].passed
    assert not found["dp_moments"].passed


def test_a_gradient_clipped_to_twice_the_norm_is_caught(monkeypatch):
    real = dpsgd.scaled_sum
    monkeypatch.setattr(
        dpsgd,
        "scaled_sum",
        lambda model, lot: real(model, lot._replace(rule=lambda norms: 2 * lot.rule(norms))),
    )
    assert not dpsgd_step.audit(BUDGET, runs=FEW, noise=NOISE).passed


def test_features_of_twice_the_norm_are_caught(monkeypatch):
    monkeypatch.setattr(dp_merf, "features", twice(dp_merf.features))
    assert not dp_merf_release.audit(BUDGET, runs=FEW, noise=NOISE).passed


def test_a_teacher_whose_clip_is_twice_its_claim_is_caught(monkeypatch):
    clipped = dp_teacher.clipped_sum
    monkeypatch.setattr(
        dp_teacher, "clipped_sum", lambda *given: clipped(*given[:-1], 2 * given[-1])
    )
    assert not dp_teacher_step.audit(BUDGET, runs=FEW, noise=NOISE).passed


def test_a_head_whose_gradients_are_twice_their_claim_is_caught(monkeypatch):
    monkeypatch.setattr(lattice_gradients, "gradient_sum", twice(lattice_gradients.gradient_sum))
    assert not dp_head_step.audit(BUDGET, runs=FEW, noise=NOISE).passed


def test_a_dpsgd_step_without_noise_is_caught(monkeypatch):
    monkeypatch.setattr(type(NOISE), "normal", lambda _, shape: np.zeros(shape))
    assert not dpsgd_step.audit(BUDGET, runs=FEW, noise=NOISE).passed


def test_half_the_noise_is_caught():
    assert not datalens_votes.audit(BUDGET, runs=FEW, noise=suite.HalvedNoise()).passed
    assert not dpsgd_step.audit(BUDGET, runs=FEW, noise=NOISE, share_of_noise=0.5).passed
    assert not dp_head_step.audit(BUDGET, runs=FEW, noise=suite.HalvedNoise()).passed


# attacks on what leaves


def test_whole_fits_leak_part_of_the_claim_and_never_more():
    verdict = dp_moments_fit.audit(BUDGET, runs=700, noise=NOISE)
    assert verdict.passed and verdict.mu_lower > 0.1 * verdict.mu_claimed


def test_a_fit_whose_noise_is_a_quarter_of_the_plan_s_is_caught(monkeypatch):
    """The expected figures are from dp_synthesis.md 3.4."""
    release = dp_moments.release
    monkeypatch.setattr(
        dp_moments,
        "release",
        lambda total, *, sigma, **rest: release(total, sigma=sigma / 4, **rest),
    )
    assert not dp_moments_fit.audit(BUDGET, runs=400, noise=NOISE).passed


def test_a_thousand_canaries_prove_part_of_the_claim():
    verdict = dp_moments_canaries.audit(BUDGET, canaries=1000, noise=NOISE)
    assert verdict.passed and verdict.epsilon_lower > 1.5


def test_membership_is_found_in_copies_and_not_in_moments():
    copies = nearest_neighbour.attacked(nearest_neighbour.copies, mu_claimed=BUDGET.mu, delta=1e-5)
    assert not copies.passed and copies.evidence["auc"] > 0.99
    ours = nearest_neighbour.audit("dp_moments", BUDGET, noise=NOISE)
    assert ours.passed and ours.evidence["auc"] < 0.65


# the command


def verdicts(*, control_lower: float = 20.0, ours_lower: float = 9.0) -> dict:
    ours = of_mu(mu_claimed=2.0, mu_lower=1.9, delta=1e-5, evidence={})
    attack = of_epsilon(
        mu_claimed=BUDGET.mu, epsilon_lower=ours_lower, delta=1e-5, evidence={"auc": 0.5}
    )
    control = of_epsilon(mu_claimed=BUDGET.mu, epsilon_lower=control_lower, delta=1e-5, evidence={})
    nothing = of_epsilon(mu_claimed=math.inf, epsilon_lower=0.0, delta=1e-5, evidence={})
    return {
        "mechanisms": {"a": ours},
        "attacks": {"b": attack, "none": nothing},
        "controls": {"c": control},
    }


def run(monkeypatch, tmp_path, found: dict) -> tuple[dict, object]:
    """Returns audit.json and the command's exit code when the audits find `found`."""
    for group, entries in found.items():
        function = lambda effort, entries=entries: entries  # noqa: E731
        function.__name__ = group
        monkeypatch.setattr(suite, group, function)
    monkeypatch.setattr(sys, "argv", ["audit", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert (tmp_path / "out" / "audit.png").read_bytes().startswith(b"\x89PNG")
    return json.loads((tmp_path / "out" / "audit.json").read_text()), stopped.value.code


def test_the_command_writes_the_claims_beside_the_bounds(monkeypatch, tmp_path):
    report, code = run(monkeypatch, tmp_path, verdicts())
    assert code is None
    assert {"mu_claimed", "mu_lower", "epsilon_claimed", "epsilon_lower"} <= report["mechanisms"][
        "a"
    ].keys()
    assert report["mechanisms"]["a"]["epsilon_lower"] == accounting.gdp_epsilon(mu=1.9, delta=1e-5)
    assert report["attacks"]["none"]["epsilon_claimed"] == "inf"


def test_a_broken_claim_and_a_control_that_is_missed_fail_the_command(monkeypatch, tmp_path):
    assert "b leaks more" in run(monkeypatch, tmp_path, verdicts(ours_lower=11.0))[1]
    assert "c was not caught" in run(monkeypatch, tmp_path, verdicts(control_lower=5.0))[1]


def test_the_picture_leaves_out_claims_of_nothing(tmp_path):
    report = {
        group: {n: v.as_dict() for n, v in found.items()} for group, found in verdicts().items()
    }
    figure = plot.draw(report)
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["a", "b", "c"]
    canvas.save(figure, tmp_path / "a.png")


def test_nothing_imports_the_audits_and_the_estimators_import_privacy_alone():
    auditing = set((ROOT / "audits").glob("*.py"))
    for file in {*ROOT.glob("pipelines/**/*.py"), *ROOT.glob("stages/*.py")} - auditing:
        assert not imported(file) & auditing, file
        names = ast.unparse(ast.parse(file.read_text()))
        assert not re.search(r"(?<!privacy\.)(?<!privacy import )\baudits\.", names), file
    for file in (ROOT / "pipelines/privacy/audits").glob("*.py"):
        assert {path.relative_to(ROOT).parts[:2] for path in closure(file)} == {
            ("pipelines", "privacy")
        }, file
