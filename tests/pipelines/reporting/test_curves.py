from pipelines.reporting import curves


def panels(run):
    return curves.rounds(run.read()["curves"], run.params.synthesis.generators, run.summary())


def test_a_panel_per_generator_of_use_with_few_lines_and_local_level(run):
    (panel,) = panels(run)  # datalens makes noise
    assert panel["generator"] == "dp_moments"
    names = [line["name"] for line in panel["shared"]["lines"]]
    assert names[0] == "pppfl" and set(names) == {"pppfl", "fedavg", "dpsgd"}
    local = panel["home"]["lines"][-1]
    assert local["name"] == "local" and local["points"][0][1] == local["points"][1][1]
    assert len(panel["shared"]["lines"][0]["points"]) == 4
    assert len(panel["home"]["lines"][0]["points"]) == 3  # one round was not fine-tuned


def test_without_more_than_one_fine_tuned_round_there_is_no_plot_of_them(run):
    last = {method: rows[-1:] for method, rows in run.read()["curves"].items()}
    (panel,) = curves.rounds(last, run.params.synthesis.generators, run.summary())
    assert panel["home"] is None and len(panel["shared"]["lines"]) == 3


def test_newcomers_stand_at_equal_distances_and_the_untrained_start_is_first(run):
    (plot, _) = run.view()["new_clients"]["plots"].values()
    assert [line["name"] for line in plot["lines"]] == ["random_init", "pppfl", "fedavg"]
    assert [tick["text"] for tick in plot["x_ticks"]] == ["0", "8", "16"]
    first, second, third = [tick["at"] for tick in plot["x_ticks"]]
    assert abs((third - second) - (second - first)) < 0.1
    assert len(plot["lines"][0]["band"]) == 4  # without labels there is no interval
