"""Who gains by federating: differences by hand, and every client that does not is named or counted."""

import pytest

from pipelines.reporting import collect, gains


def summary_of(own, alone, *, entries=()):
    """Returns a summary of PPPFL and `local` with these accuracies, elsewhere a tenth of them."""
    methods = {}
    for name, accuracies in (("pppfl/g", own), ("local", alone)):
        elsewhere = {client: value / 10 for client, value in accuracies.items()}
        methods[name] = {"clients": accuracies, "clients_elsewhere": elsewhere, "collapsed": ""}
    return {"methods": methods, "new_clients": {"g": list(entries)}}


def test_where_each_client_gains_the_least_gain_is_named():
    (text,) = gains.sentences(summary_of({"a": 0.9, "b": 0.8}, {"a": 0.6, "b": 0.7}), ["g"])
    assert text == (
        "With pppfl/g, each client gains on its own images (+0.200 in the mean, b least with "
        "+0.100). Each client gains on everybody's images (+0.020 in the mean, b least with +0.010)."
    )


def test_who_gains_nothing_is_named_and_a_client_that_is_level_is_among_them():
    own = {"a": 0.9, "b": 0.7, "c": 0.5}
    (text,) = gains.sentences(summary_of(own, {"a": 0.6, "b": 0.7, "c": 0.6}), ["g"])
    assert text.startswith(
        "With pppfl/g, 1 of 3 clients gain on their own images (+0.067 in the mean); c and b gain "
        "nothing there, c least with -0.100. "
    )
    (text,) = gains.sentences(summary_of({"a": 0.5}, {"a": 0.5}), ["g"])
    assert text.startswith("With pppfl/g, nobody gains on its own images (+0.000 in the mean); a ")


def test_fifty_clients_are_a_sentence_too():
    clients = [f"c{number}" for number in range(50)]
    alone = dict.fromkeys(clients, 0.5)
    own = {client: 0.6 if number < 20 else 0.4 for number, client in enumerate(clients)}
    (text,) = gains.sentences(summary_of(own, alone), ["g"])
    assert "20 of 50 clients gain" in text and "and 25 others gain nothing there" in text
    assert len(text) < 320


def test_newcomers_are_told_of_with_the_fewest_and_the_most_labels():
    entries = [
        {"rival": "random_init", "labels": 8, "difference": 0.3},
        {"rival": "random_init", "labels": 16, "difference": 0.2},
        {"rival": "random_init", "labels": 64, "difference": 0.1},
        {"rival": "fedavg/g", "labels": 64, "difference": 9.0},
    ]
    (text,) = gains.sentences(summary_of({"a": 0.9}, {"a": 0.6}, entries=entries), ["g"])
    assert text.endswith(
        "A newcomer gains +0.300 with 8 labels and +0.100 with 64 labels on its own images."
    )


@pytest.mark.parametrize("damage", ["no local", "collapsed"])
def test_without_training_alone_or_a_living_model_nothing_is_claimed(damage):
    summary = summary_of({"a": 0.9}, {"a": 0.6})
    if damage == "no local":
        del summary["methods"]["local"]
    else:
        summary["methods"]["pppfl/g"]["collapsed"] = "It is dead."
    assert gains.sentences(summary, ["g"]) == []


def test_elsewhere_training_alone_is_read_without_its_class_shares(run):
    folder = collect.method_folders(run.params, "digits")["local"]
    run.edit(
        folder / "results.json",
        lambda results: results["clients"]["a"].update(global_prior_off=0.125),
    )
    figures = run.summary()["methods"]["local"]
    assert figures["clients_elsewhere"]["a"] == 0.125
    results = run.read()["results"]["local"]["clients"]["b"]
    assert figures["clients_elsewhere"]["b"] == results["global_after"]
