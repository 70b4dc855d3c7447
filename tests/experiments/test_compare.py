"""Tests the figures that are put side by side, of results made by hand."""

import math

from experiments import compare
from experiments.compare import Score
from experiments.revisions import Found


def results(**others) -> Found:
    clients = {
        "c0": {"after": {"accuracy": 0.9}, "global_after": 0.4, "global_prior_off": 0.6},
        "c1": {"after": {"accuracy": 0.5}, "global_after": 0.8},
    }
    content = {"clients": clients, "epsilon_max": 10.0, "guarantee": "formal", **others}
    return Found("models/private/baselines/own/x/x/results.json", content)


def test_the_figures_are_means_over_clients_and_the_worst_of_them():
    """The figure that is read elsewhere counts where it is there."""
    score = compare.score(results())
    assert score == Score(0.7, 0.7, 0.5, "c1", 10.0, "")


def test_what_is_not_private_or_collapsed_says_so():
    void = compare.score(results(guarantee="none", epsilon_max="inf"))
    assert (void.epsilon, void.mark) == (math.inf, "(NOT PRIVATE)")
    bound = compare.score(results(guarantee="none", epsilon_max="inf", upper_bound=True))
    assert bound.mark == "(upper bound, not private)"
    health = {"collapsed": True, "why": "it predicts one class"}
    assert compare.score(results(health=health)).mark == "(COLLAPSED)"


def test_each_method_has_a_line_for_each_run_and_dashes_where_a_run_lacks_it():
    good = Score(0.7, 0.6, 0.5, "c1", 10.0, "")
    runs = {
        "workspace": {("digits", "local"): good, ("mnist", "dpsgd"): good},
        "other": {("digits", "local"): good},
    }
    assert compare.lines(runs) == [
        "",
        "digits  run        own test part  everybody's  worst client  epsilon",
        "local   workspace  0.700          0.600        0.500 (c1)    10",
        "        other      0.700          0.600        0.500 (c1)    10",
        "",
        "mnist  run        own test part  everybody's  worst client  epsilon",
        "dpsgd  workspace  0.700          0.600        0.500 (c1)    10",
        "       other      –              –            –             –",
    ]
