"""Tests that the generator follows the noisy votes, and nothing else."""

import numpy as np
import pytest
import torch

from pipelines.synthesis.datalens import student
from pipelines.synthesis.datalens.student import Student


def test_votes_are_centred_after_their_noise_and_before_the_threshold(
    small_space, datalens_settings
):
    """A vote that all fakes share no longer moves any. Thresholds count the rest."""
    shared, own = np.full((3, 30), 5.0), np.eye(3, 30) * 3 - 1
    settings = datalens_settings(centre_votes=True, threshold=1.5 / 6)
    np.testing.assert_array_equal(student.direction(shared, settings, small_space), 0)
    np.testing.assert_array_equal(
        student.direction(shared + own, settings, small_space),
        np.sign(own - own.mean(0)) * (own == 2),
    )
    off = datalens_settings(centre_votes=False)
    np.testing.assert_array_equal(student.direction(shared, off, small_space), shared)


def test_targets_move_each_image_by_the_step_length_along_its_votes():
    images, direction = torch.rand(2, 1, 2, 3), np.array([[3.0, 0, 0, -4.0, 0, 0], [0.0] * 6])
    move = (student.target(images, direction, 0.25) - images).flatten(1)
    assert move[0].square().mean().sqrt().item() == pytest.approx(0.25, rel=1e-5)
    assert (
        torch.nn.functional.cosine_similarity(move[0], torch.tensor(direction[0]).float(), dim=0)
        > 0.9999
    )
    assert not move[1].any()  # nobody voted: it stays, without a division by zero


def test_unanimous_noiseless_votes_pull_the_generator_along(small_space, datalens_settings):
    block = datalens_settings(generator_steps=50, generator_learning_rate=1e-2, step_length=0.2)
    pupil = Student(block, small_space, seed=0, on=torch.device("cpu"))
    question = pupil.ask(0)
    pupil.learn(0, question, np.ones((block.batch, 30)))
    after = pupil.training.network(question.z, question.labels)
    assert (after - question.fakes).mean() > 0.1


def test_a_step_asks_about_classes_in_turn_and_teachers_train_longer_before_the_first(
    small_space, datalens_settings
):
    block = datalens_settings(labels="in_turn", batch=2, teacher_steps=3, teacher_warmup=4)
    pupil = Student(block, small_space, seed=0, on=torch.device("cpu"))
    classes = small_space.classes
    asked = np.concatenate([pupil.ask(step).labels.numpy() for step in range(3)])
    np.testing.assert_array_equal(asked, np.arange(6) % classes)
    assert [pupil.rounds(step) for step in range(3)] == [7, 3, 3]


def test_the_learning_rate_falls_to_nothing_along_a_cosine_or_stays(small_space, datalens_settings):
    constant = datalens_settings(generator_learning_rate=0.01, steps=4)
    assert [student.learning_rate(step, constant) for step in range(4)] == [0.01] * 4
    falling = datalens_settings(generator_learning_rate=0.01, steps=4, cosine=True)
    rates = [student.learning_rate(step, falling) for step in range(4)]
    assert rates == pytest.approx([0.01, 0.00853553, 0.005, 0.00146447], rel=1e-5)

    moved = {}
    for step in (0, 3):
        pupil = Student(falling, small_space, seed=0, on=torch.device("cpu"))
        question = pupil.ask(0)
        pupil.learn(step, question, np.ones((falling.batch, 30)))
        after = pupil.training.network(question.z, question.labels)
        moved[step] = (after - question.fakes).abs().mean().item()
    assert 0 < moved[3] < 0.5 * moved[0]


def test_settings_that_change_nothing_are_not_written(datalens_settings):
    assert not {"cosine", "high_noise"} & set(datalens_settings().model_dump())
    assert datalens_settings(cosine=True).model_dump()["cosine"] is True
