"""Fine-tunes a method's models at the clients and scores them: every method alike. All of it is private."""

import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from torch import nn

from pipelines import seeds
from pipelines.config.training import FineTune
from pipelines.datasets.labelled_images import Images
from pipelines.datasets.shards import Shard
from pipelines.evaluation.metrics import METRICS, other_metrics, over_clients, scores_of
from pipelines.evaluation.scoring import scores
from pipelines.federation.home.personal import Personal, prior_off
from pipelines.federation.home.recipes import Build, fine_tuned, outputs
from pipelines.training import replay
from pipelines.training.pool import Pool
from pipelines.training.tensors import State, with_state


class Homes(NamedTuple):
    """Holds what one initial model per client became.

    Attributes:
        results: {client: {"before", "after": {metric: value} on its own test part, "validation":
            accuracy on its validation part afterwards, "global_before", "global_after": accuracy on
            the global test set; and "epochs" or "steps". Of `replay` "global_at_home", the last
            accuracy with the read-out for the client's own images, else "global_prior_off", the same
            with the client's class shares taken off}}.
        personal: {client: its fine-tuned model, with both read-outs}.
        correct: {client: bool [n]}, whether each image of its test part is right afterwards.
        seconds: of the fine-tuning alone, all clients one after the other.
    """

    results: dict[str, dict]
    personal: dict[str, Personal]
    correct: dict[str, np.ndarray]
    seconds: float


class Outcome(NamedTuple):
    """Holds what a method became: its last round's model fine-tuned, and a curve over rounds.

    Attributes:
        summary: as `from_each_own` says.
        curve: one row per round.
        personal, correct, seconds: of the last round, as in `Homes`.
    """

    summary: dict
    curve: list[dict]
    personal: dict[str, Personal]
    correct: dict[str, np.ndarray]
    seconds: float


def at_home(
    initial: dict[str, State],
    shards: dict[str, Shard],
    everyone: Images,
    *,
    build: Build,
    settings: FineTune,
    seed: int,
    pool: Pool | None = None,
    alone: Mapping[str, nn.Module] | None = None,
) -> Homes:
    """Fine-tunes each client's initial model on its private records, by the recipe of the settings.

    On its own test part a client is scored with its class shares, on the global test set without.

    Args:
        initial: {client: the weights that it starts from}.
        shards: {client: its private records}.
        everyone: the global test set.
        build: makes a network of the right shape.
        settings: the recipe, and what it needs.
        seed: of the batches; each client's own is derived from it.
        pool: all released images, for `replay`; None where a method has none.
        alone: {client: the model that it trained alone}, as `fine_tuned` uses it.
    """
    results = {}
    personal = {}
    correct = {}
    seconds = 0.0
    globally = on_everyone(initial, everyone, build=build)
    for client in sorted(shards):
        shard = shards[client]
        model = with_state(build(), initial[client])
        before = scores(model, shard.test)
        started = time.perf_counter()
        tuned, facts = fine_tuned(
            model,
            shard,
            settings,
            seed=seeds.derive(seed, client),
            build=build,
            pool=pool,
            alone=alone[client] if alone else None,
        )
        seconds += time.perf_counter() - started
        predicted = tuned.predict(shard.test)
        results[client] = {
            "before": before,
            "after": scores_of(predicted, shard.test.labels),
            "validation": _accuracy(tuned.predict(shard.validation), shard.validation),
            "global_before": globally[client],
            "global_after": _accuracy(tuned.predict(everyone, elsewhere=True), everyone),
            **facts,
            **_other_read_out(tuned, shard, everyone, settings),
        }
        correct[client] = predicted == shard.test.labels
        personal[client] = tuned
    return Homes(results, personal, correct, seconds)


def _other_read_out(
    tuned: Personal, shard: Shard, everyone: Images, settings: FineTune
) -> dict[str, float]:
    """Returns the accuracy on the global test set by the read-out that is not used there."""
    if settings.recipe == "replay":
        return {"global_at_home": _accuracy(tuned.predict(everyone), everyone)}
    prior = replay.log_prior(shard.train.labels, outputs(tuned.model, shard.test))
    without = prior_off(tuned.model, prior)
    return {"global_prior_off": _accuracy(without.predict(everyone, elsewhere=True), everyone)}


def _accuracy(predicted: np.ndarray, data: Images) -> float:
    return float(np.mean(predicted == data.labels))


def on_everyone(initial: dict[str, State], everyone: Images, *, build: Build) -> dict[str, float]:
    """Returns the accuracy of each client's initial model on the global test set.

    A model that several clients start from is scored once.

    Args:
        initial: {client: the weights that it starts from}.
        everyone: the global test set.
        build: makes a network of the right shape.
    """
    accuracies = {}
    for state in initial.values():
        if id(state) not in accuracies:
            model = with_state(build(), state)
            accuracies[id(state)] = scores(model, everyone)["accuracy"]
    return {client: accuracies[id(state)] for client, state in initial.items()}


def through_rounds(
    models: list[State], shards: dict[str, Shard], everyone: Images, **arguments
) -> Outcome:
    """Does what `from_each_own` does, where all clients share one model per round.

    Args:
        models: the shared model of each round.
        shards: {client: its private records}.
        everyone: the global test set.
        arguments: as there.
    """
    initial = [dict.fromkeys(shards, model) for model in models]
    return from_each_own(initial, shards, everyone, **arguments)


def from_each_own(
    models: list[dict[str, State]],
    shards: dict[str, Shard],
    everyone: Images,
    *,
    build: Build,
    settings: FineTune,
    seed: int,
    pool: Pool | None = None,
    alone: Mapping[str, nn.Module] | None = None,
    first: int = 0,
) -> Outcome:
    """Fine-tunes the last round's models, which is the result, and draws a curve over rounds.

    Every `every`-th round and the last are fine-tuned; with `every` None the last alone. Every
    `shared_every`-th is scored as it is, on the global test set. The summary holds "clients",
    Homes.results of the last round, and what `selected_figures` finds on the curve.

    Args:
        models: per round, from round `first`, each client's initial model. Noisy training hands its
            last one alone.
        shards: {client: its private records}.
        everyone: the global test set.
        build: makes a network of the right shape.
        settings: of the fine-tuning and of the curve.
        seed: of the batches.
        pool: all released images, for `replay`; None where a method has none.
        alone: {client: the model that it trained alone}, as `fine_tuned` uses it.
        first: the number of the first of these rounds.
    """
    last = first + len(models) - 1
    tuned = {*_each(settings.every, first, last), last}
    curve = []
    for number in sorted(tuned.union(_each(settings.shared_every, first, last))):
        model = models[number - first]
        if number in tuned:
            homes = at_home(
                model,
                shards,
                everyone,
                build=build,
                settings=settings,
                seed=seed,
                pool=pool,
                alone=alone,
            )
            curve.append(tuned_row(number, homes.results))
        else:
            curve.append(shared_row(number, on_everyone(model, everyone, build=build)))
    summary = {"clients": homes.results, **selected_figures(curve)}
    return Outcome(summary, curve, homes.personal, homes.correct, homes.seconds)


def _each(step: int | None, first: int, last: int) -> range:
    """Returns every `step`-th round from the first on, without the last; none for None."""
    return range(first, last, step) if step else range(0)


def tuned_row(number: int, results: dict[str, dict]) -> dict:
    """Returns the curve's row of a round that was fine-tuned. Every client counts alike."""
    before = over_clients({client: entry["before"] for client, entry in results.items()})
    after = over_clients({client: entry["after"] for client, entry in results.items()})
    return {
        "round": number,
        "accuracy_before": before["mean_accuracy"],
        "accuracy_after": after["mean_accuracy"],
        "accuracy_validation": _mean(results, "validation"),
        "worst_after": after["worst_accuracy"],
        **{f"{metric.name}_after": after[f"mean_{metric.name}"] for metric in other_metrics()},
        "global_accuracy": _mean(results, "global_before"),
    }


def shared_row(number: int, globally: dict[str, float]) -> dict:
    """Returns the curve's row of a round that nobody fine-tuned: its model on the global test set."""
    return {"round": number, "global_accuracy": sum(globally.values()) / len(globally)}


def selected_figures(curve: list[dict]) -> dict:
    """Returns {"candidates", "selected", "bmta", "bmt_f1"}: figures of selected rounds.

    They stand beside the last round's. A candidate is a fine-tuned round after the first step of
    training; round 0 counts for methods without rounds alone. With one candidate nothing was selected,
    and all figures are that round's.

    `selected` is the round of the best mean accuracy on the private validation parts, the earliest
    among equals. Early stopping uses these parts too, in each round alike. It is an experimenter's
    figure: in a federation the clients' validation scores would have to leave them, and nothing here
    accounts for that. `bmta` and `bmt_f1` are the paper's maxima of mean test accuracy and macro-F1:
    selected on test data, for comparison alone.
    """
    tuned = [row for row in curve if "accuracy_after" in row]
    candidates = [row for row in tuned if row["round"] > 0] or tuned
    best = max(candidates, key=lambda row: row["accuracy_validation"])
    return {
        "candidates": len(candidates),
        "selected": {
            "round": best["round"],
            "mean_accuracy": best["accuracy_after"],
            "worst": best["worst_after"],
            **{metric.name: best[f"{metric.name}_after"] for metric in other_metrics()},
        },
        **_best_means(candidates),
    }


def _best_means(candidates: list[dict]) -> dict[str, float]:
    """Returns the best mean over rounds of every metric, under its key: "bmta", "bmt_f1"."""
    best = {}
    for metric in METRICS:
        best[metric.best_key] = metric.best_of([row[f"{metric.name}_after"] for row in candidates])
    return best


def _mean(results: dict[str, dict], field: str) -> float:
    return sum(entry[field] for entry in results.values()) / len(results)
