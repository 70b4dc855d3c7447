import math

from pipelines.reporting import views


def test_roads_are_sorted_by_their_gain_at_home_and_noise_is_not_among_them(run):
    plot = views.roads(run.summary())
    assert plot["names"] == ["pppfl/dp_moments", "random_init", "fedavg/dp_moments", "dpsgd"]
    assert plot["shown"] == 4 and not plot["has_bound"] and not plot["over_clients"]
    places = [mark["at"] for mark in plot["home"]["marks"]]
    assert places == sorted(places, reverse=True)
    run.bound("fedavg/dp_moments")
    assert views.roads(run.summary())["has_bound"]


def test_more_roads_than_fit_are_folded_but_never_the_recommended_one(run, monkeypatch):
    monkeypatch.setattr(views, "MOST_ROADS", 1)
    summary = run.summary()
    assert views.roads(summary)["shown"] == 1
    summary["choice"]["road"] = "fedavg/dp_moments"
    assert views.roads(summary)["shown"] == 3


def test_clients_are_grouped_by_what_is_shown_of_them(run):
    summary = run.summary()
    gains = summary["methods"]["pppfl/dp_moments"]["gains"]
    gains["b"].update(value=0.2, low=0.1, high=0.3, differing=20)
    groups = views.clients(summary)
    assert [(one["verdict"], [row["client"] for row in one["rows"]]) for one in groups] == [
        (1, ["b"]),
        (0, ["a"]),
    ]
    assert groups[0]["rows"][0]["price"]["epsilon"] == 3.0
    summary["choice"] = None
    (group,) = views.clients(summary)
    assert group["verdict"] is None and len(group["rows"]) == 2


def test_prices_are_grouped_by_epsilon_and_a_missing_score_leaves_a_gap(run):
    summary = run.summary()
    summary["clients"]["a"]["generators"]["dp_moments"]["tstr_accuracy_global"] = math.nan
    drawn = views.prices(summary)
    keys = [(row["generator"], row["epsilon"], row["clients"]) for row in drawn["rows"]]
    assert keys[2:] == [("dp_moments", 3.0, ["b"]), ("dp_moments", 10.0, ["a"])]
    assert [mark["text"] for mark in drawn["scores"]["marks"]] == ["0.500", "0.500", "0.500", "–"]


def test_the_grids_of_noise_come_last(run):
    summary = run.summary()
    found = views.grids(run.read()["grids"], summary, run.params.synthesis.generators)
    assert [(group["generator"], group["weak"]) for group in found] == [
        ("dp_moments", False),
        ("datalens", True),
    ]
