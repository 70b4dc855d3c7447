import math
import re

import numpy as np
import pytest

from pipelines.errors import UserError
from pipelines.federation.core.messages import Payload, Reply, by_images, weighted_mean
from pipelines.federation.inprocess import InProcess


def reply(client, value):
    return Reply(client, Payload({"w": np.array([value], np.float64)}))


def test_weighted_mean_is_the_textbook_one():
    mean = weighted_mean([reply("a", 1.0), reply("b", 4.0)], [1.0, 3.0])
    assert mean["w"] == (1 * 1 + 3 * 4) / 4


def test_weights_need_not_sum_to_one():
    replies = [reply("a", 1.0), reply("b", 4.0)]
    assert weighted_mean(replies, [0.1, 0.3])["w"] == pytest.approx(
        weighted_mean(replies, [10, 30])["w"]
    )


@pytest.mark.parametrize("images", [math.nan, math.inf, -2, 0, 1e308, True, None])
def test_a_weight_that_is_no_count_is_refused_by_the_clients_name(images):
    given = [
        Reply("honest", Payload({}, {"images": 1})),
        Reply("other", Payload({}, {"images": images})),
    ]
    with pytest.raises(
        UserError,
        match=f"The number 'images' that other tells must be .* Got {re.escape(repr(images))}",
    ):
        by_images(given)


def test_engine_sorts_replies_whatever_the_order_of_handlers():
    handlers = {
        name: lambda payload, name=name: Payload({}, {"who": name}) for name in ("b", "c", "a")
    }
    replies = InProcess(handlers).call(Payload({}))
    assert [r.client for r in replies] == ["a", "b", "c"]
    assert [r.payload.scalars["who"] for r in replies] == ["a", "b", "c"]


def test_a_client_that_has_left_sends_no_reply():
    engine = InProcess({"a": lambda payload: payload, "b": lambda payload: None})
    assert [r.client for r in engine.call(Payload({}))] == ["a"]
