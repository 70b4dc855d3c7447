import numpy as np

from pipelines import paths
from pipelines.files import write_arrays
from pipelines.reporting import choice, collect


def test_only_private_roads_of_use_are_candidates(run):
    run.bound("fedavg/dp_moments")
    assert choice.candidates(run.summary()["methods"]) == ["pppfl/dp_moments", "dpsgd"]
    run.collapse("dpsgd")
    run.collapse("pppfl/dp_moments")
    assert choice.candidates(run.summary()["methods"]) == []
    assert run.summary()["choice"] is None
    assert "None to recommend" in run.source()


def test_of_roads_that_are_level_at_home_the_best_elsewhere_is_chosen(run):
    chosen = run.summary()["choice"]
    assert (chosen["road"], chosen["equals"]) == ("pppfl/dp_moments", [])
    folders = collect.method_folders(run.params, "digits")
    # the same images right at home, and dpsgd better elsewhere
    right = {client: np.arange(100) < 95 for client in "ab"}
    for method in ("pppfl/dp_moments", "dpsgd"):
        write_arrays(folders[method] / paths.CORRECT, right)

    def better(content):
        for scored in content["clients"].values():
            scored["global_prior_off"] = 0.9

    run.edit(folders["dpsgd"] / "results.json", better)
    chosen = run.summary()["choice"]
    assert (chosen["road"], chosen["equals"]) == ("dpsgd", ["pppfl/dp_moments"])
