"""Declares the settings of a linear head on fixed features, of generators and of `dpsgd_head`."""

from typing import Annotated, Literal

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from pipelines.config.data import Augmentation
from pipelines.config.values import Block, Count, Fraction, Norm, Part, Rate, number


class HeadSchedule(Block):
    """Holds how many noisy steps a head takes, and their rate, from a signal on.

    Attributes:
        from_signal: The least mu times the number of records, over the root of the number of
            clients that add noise of their own.
        steps: T, the steps. Each looks at all records.
        learning_rate: Of each step.
    """

    from_signal: number(float, "[0, 1e12]")
    steps: Count
    learning_rate: Rate


def _rising(schedules: list[HeadSchedule]) -> list[HeadSchedule]:
    starts = [schedule.from_signal for schedule in schedules]
    if not starts or starts[0] != 0 or starts != sorted(set(starts)):
        rule = "a list of at least one schedule, rising by from_signal, the first from 0"
        raise PydanticCustomError("rule", "must be {rule}", {"rule": rule})
    return schedules


HeadSchedules = Annotated[list[HeadSchedule], AfterValidator(_rising)]


class HeadOn(Block):
    """Holds what heads on one network's features have in common."""

    schedules: HeadSchedules


class Heads(Block):
    """Holds what heads have in common, by the network of their features."""

    scatter: HeadOn
    encoder: HeadOn


class HeadWarps(Augmentation):
    """Holds how the copies of a record are warped, of which a head learns beside the record.

    Attributes:
        copies: How many there are of each record, itself among them.
    """

    copies: Literal[2, 4, 8]
    noise: Literal[0.0] = 0.0


class Head(Block):
    """Holds the settings of noisy full-batch steps of a linear head on fixed features.

    Attributes:
        clipping_norm: The largest norm of a record's gradient, over all weights together.
        count_share: The share of mu squared that buys the noisy number of records.
        momentum: Of the steps.
        averaging: The weight of the past in the average of the iterates, which is the head.
        network: On whose features the head is trained.
        warps: Of the copies of each record; None: the record alone.
        schedules: Rising by `from_signal`, of which the first begins at 0. Where a block names
            none, `Blocks` has those of the network.
    """

    clipping_norm: Norm
    count_share: Part
    momentum: Fraction = 0.0
    averaging: Fraction = 0.0
    network: Literal["scatter", "encoder"] = "scatter"
    warps: HeadWarps | None = None
    schedules: HeadSchedules | None = None
