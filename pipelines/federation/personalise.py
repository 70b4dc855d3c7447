"""Fine-tuning at home and its scores: every method alike, from any initial model. All of it is private."""

from collections.abc import Callable

from torch import nn

from pipelines import seeds
from pipelines.blocks.training import FineTune
from pipelines.datasets.containers import Images
from pipelines.datasets.shards import Shard
from pipelines.evaluation.metrics import over_clients, scores
from pipelines.training import supervised
from pipelines.training.tensors import State, state_of, with_state

Build = Callable[[], nn.Module]


def at_home(
    initial: State, shards: dict[str, Shard], everyone: Images, *, build: Build, settings: FineTune, seed: int
) -> tuple[dict, dict[str, State]]:
    """Fine-tunes `initial` on each client's private records, stopping early on its private validation part.

    Returns:
        ({client: {"before", "after": {"accuracy", "macro_f1"} on its own test part, "global_before", "global_after":
        accuracy on the global test set, "epochs"}}, {client: personal weights}).
    """
    results, models = {}, {}
    for client, shard in shards.items():
        model = with_state(build(), initial)
        before, global_before = scores(model, shard.test), scores(model, everyone)
        epochs = supervised.fit(
            model,
            shard.train,
            epochs=settings.epochs,
            batch=settings.batch,
            learning_rate=settings.learning_rate,
            seed=seeds.derive(seed, client),
            validation=shard.validation,
            patience=settings.patience,
        )
        results[client] = {
            "before": before,
            "after": scores(model, shard.test),
            "global_before": global_before["accuracy"],
            "global_after": scores(model, everyone)["accuracy"],
            "epochs": epochs,
        }
        models[client] = state_of(model)
    return results, models


def through_rounds(
    models: list[State], shards: dict[str, Shard], everyone: Images, *, build: Build, settings: FineTune, seed: int
) -> tuple[dict, list[dict], dict[str, State]]:
    """The last round's model fine-tuned (the result), and a curve over rounds.

    Every `every`-th round is fine-tuned too, as the paper does each round. `bmta` and `bmt_f1` are its maxima over
    rounds of the mean test accuracy and macro-F1: selected on test data, shown for comparison only.

    Returns:
        ({"clients", "bmta", "bmt_f1"}, rows of the curve, personal weights per client).
    """
    last = len(models) - 1
    chosen = sorted({*range(0, last, settings.every), last})
    curve = []
    for number in chosen:
        results, personal = at_home(models[number], shards, everyone, build=build, settings=settings, seed=seed)
        before = over_clients({client: entry["before"] for client, entry in results.items()})
        after = over_clients({client: entry["after"] for client, entry in results.items()})
        curve.append(
            {
                "round": number,
                "accuracy_before": before["mean_accuracy"],
                "accuracy_after": after["mean_accuracy"],
                "macro_f1_after": after["mean_macro_f1"],
                "global_accuracy": sum(entry["global_before"] for entry in results.values()) / len(results),
            }
        )
    trained = curve[1:] or curve  # a method without rounds has its one model
    summary = {
        "clients": results,
        "bmta": max(row["accuracy_after"] for row in trained),
        "bmt_f1": max(row["macro_f1_after"] for row in trained),
    }
    return summary, curve, personal
