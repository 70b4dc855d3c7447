import numpy as np
from tqdm import tqdm

from pipelines.federation.core import rounds
from pipelines.federation.core.messages import Payload, ServerState, weighted_mean
from pipelines.federation.inprocess import InProcess


def step(state, replies):
    return ServerState(weighted_mean(replies, [1.0] * len(replies)))


def plus(value):
    def update(payload):
        return Payload({"w": payload.arrays["w"] + value}, {"loss": float(value)})

    return update


def test_history_holds_the_start_and_every_round():
    engine = InProcess({"a": plus(1.0), "b": plus(3.0)})
    history = rounds.run(ServerState({"w": np.zeros(1)}), step, engine, rounds=3, name="t")
    assert [model["w"].item() for model in history.models] == [0, 2, 4, 6]
    assert history.curves == [{"round": r, "loss": 2.0, "clients": 2} for r in (1, 2, 3)]


def test_a_run_of_many_rounds_may_keep_its_last_model_alone():
    engine = InProcess({"a": plus(1.0), "b": plus(3.0)})
    whole, last = (
        rounds.run(
            ServerState({"w": np.zeros(1)}), step, engine, rounds=3, name="t", last_alone=alone
        )
        for alone in (False, True)
    )
    assert [model["w"].item() for model in last.models] == [6]
    assert (last.curves, {**last.cost, "seconds": 0}) == (
        whole.curves,
        {**whole.cost, "seconds": 0},
    )


def test_what_a_client_spent_is_told_for_each_and_never_as_a_mean():
    def spends(epsilon, rounds):
        def update(payload):
            told = {"epsilon_spent": epsilon * payload.scalars["round"], "signal_to_noise": epsilon}
            return Payload(payload.arrays, told) if payload.scalars["round"] <= rounds else None

        return update

    engine = InProcess({"a": spends(1.0, 1), "b": spends(3.0, 2)})
    assert rounds.run(ServerState({"w": np.zeros(1)}), step, engine, rounds=9, name="t").curves == [
        {
            "round": 1,
            "signal_to_noise": 2.0,
            "epsilon_spent.a": 1.0,
            "epsilon_spent.b": 3.0,
            "clients": 2,
        },
        {"round": 2, "signal_to_noise": 3.0, "epsilon_spent.b": 6.0, "clients": 1},
    ]


def test_the_loop_ends_when_every_client_has_left():
    def leaves_after_two(payload):
        return plus(1.0)(payload) if payload.scalars["round"] <= 2 else None

    history = rounds.run(
        ServerState({"w": np.zeros(1)}),
        step,
        InProcess({"a": leaves_after_two}),
        rounds=9,
        name="t",
    )
    assert len(history.curves) == 2


def test_the_bill_counts_bytes_both_ways_and_the_rounds_that_were_answered():
    """There are two clients, a float64 each way, and three rounds. b leaves after the first, and
    still has the last model.
    """
    engine = InProcess(
        {"a": plus(1.0), "b": lambda sent: None if sent.scalars["round"] > 1 else plus(2.0)(sent)}
    )
    cost = rounds.run(ServerState({"w": np.zeros(1)}), step, engine, rounds=3, name="t").cost
    assert (cost["rounds"], cost["bytes_down"], cost["bytes_up"]) == (3, 8 * (4 + 2), 8 * 4)
    assert cost["seconds"] > 0


def test_the_bar_shows_the_mean_loss_of_the_last_round(monkeypatch, capfd):
    monkeypatch.setattr(
        rounds, "tqdm", lambda *given, **options: tqdm(*given, **{**options, "disable": False})
    )

    def told(loss):
        return lambda payload: Payload(payload.arrays, {"train_loss": loss, "images": 5})

    engine = InProcess({"a": told(1.0), "b": told(3.0)})
    rounds.run(ServerState({"w": np.zeros(1)}), step, engine, rounds=2, name="t")
    assert "train loss 2.000" in capfd.readouterr().err
